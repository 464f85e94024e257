"""What the transfer engine handed to the model's loader in this process, in order."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any

import torch

from .tensor_bytes import dtype_name, sha256

LoadWeights = Callable[[list[tuple[str, torch.Tensor]]], Any]


@dataclass(frozen=True)
class ReceivedTensor:
    """One tensor as it came: `dtype` is the torch attribute name, `sha256` is over the raw row-major bytes."""

    name: str
    dtype: str
    shape: list[int]
    nbytes: int
    sha256: str


class Received:
    """The list, since the last `forget`. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tensors: list[ReceivedTensor] = []

    def note(self, weights: Iterable[tuple[str, torch.Tensor]]) -> None:
        """Digest and append."""
        for name, tensor in weights:
            nbytes = tensor.numel() * tensor.element_size()
            entry = ReceivedTensor(name, dtype_name(tensor.dtype), list(tensor.shape), nbytes, sha256(tensor))
            with self._lock:
                self._tensors.append(entry)

    def as_dicts(self) -> list[dict[str, Any]]:
        """The list as JSON-ready objects."""
        with self._lock:
            return [asdict(entry) for entry in self._tensors]

    def forget(self) -> int:
        """Empty the list. Returns how many entries it held."""
        with self._lock:
            count = len(self._tensors)
            self._tensors.clear()
            return count


RECEIVED = Received()


def noting(load_weights: LoadWeights) -> LoadWeights:
    """`load_weights`, preceded by a note: before, so that a tensor whose load fails is listed too."""

    @functools.wraps(load_weights)
    def note_then_load(weights: list[tuple[str, torch.Tensor]]) -> Any:
        RECEIVED.note(weights)
        return load_weights(weights)

    return note_then_load
