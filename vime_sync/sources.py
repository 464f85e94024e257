"""What may be pushed: a path, an open checkpoint, torch tensors by name, or TensorSources."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from vime_sync.checkpoint import Checkpoint, open_checkpoint
from vime_sync.errors import SettingError
from vime_sync.tensors import TensorSource, TorchTensor, check_source, from_torch

if TYPE_CHECKING:
    import torch

Source = str | Path | Checkpoint | Mapping[str, "torch.Tensor"] | Iterable[TensorSource]


@contextlib.contextmanager
def tensors_of(source: Source) -> Iterator[list[TensorSource]]:
    """The tensors of a source, for as long as the context lasts. A checkpoint that was opened here is closed after it.

    Raises CheckpointError, UnsupportedTensor for a tensor that contradicts itself, and SettingError when there is
    nothing to send, or nothing that could be sent.
    """
    with contextlib.ExitStack() as stack:
        tensors: list[TensorSource]
        if isinstance(source, (str, Path)):
            tensors = list(stack.enter_context(open_checkpoint(source)))
        elif isinstance(source, Mapping):
            tensors = list(_torch_tensors(source))
        else:
            tensors = _listed(source)
        if not tensors:
            raise SettingError("source", "holds no tensors: there is nothing to send")
        for tensor in tensors:
            check_source(tensor)
        yield tensors


def _listed(source: object) -> list[TensorSource]:
    if not isinstance(source, Iterable):
        advice = "give a path, a Checkpoint, a mapping of names to torch tensors, or TensorSources"
        raise SettingError("source", f"{type(source).__name__} holds no tensors", next_step=advice)
    return list(source)


def _torch_tensors(source: Mapping[str, torch.Tensor]) -> list[TorchTensor]:
    try:
        return from_torch(source)
    except ModuleNotFoundError as error:
        why = f"a mapping is taken for torch tensors, and torch cannot be imported ({error})"
        raise SettingError("source", why, next_step="install torch, or give TensorSources") from None
