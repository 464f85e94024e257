"""Tensors as a sync needs them: a name, metadata, and bytes on demand."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Protocol

from vime_sync.dtypes import from_torch_name
from vime_sync.errors import Mismatch, UnsupportedTensor

if TYPE_CHECKING:
    import torch


class TensorSource(Protocol):
    """One tensor of a checkpoint or a model.

    name    by which the engine knows it
    dtype   torch attribute name, `bfloat16`
    shape   sizes, outermost first; () for a 0-dim tensor
    nbytes  bytes that `read` gives: product of the sizes × item size
    """

    @property
    def name(self) -> str: ...

    @property
    def dtype(self) -> str: ...

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def nbytes(self) -> int: ...

    def read(self) -> memoryview:
        """The bytes, little-endian and row-major, as a flat view of `nbytes` bytes. It stays valid while held."""
        ...


def read_checked(tensor: TensorSource) -> memoryview:
    """`tensor.read()` as flat bytes. Raises Mismatch when there are not `nbytes` of them.

    The engine would wait for the announced number until its deadline, so the other number must not be sent.
    """
    view = tensor.read()
    if view.nbytes != tensor.nbytes:
        raise Mismatch(tensor.name, tensor.nbytes, view.nbytes)
    return view if view.format == "B" and view.ndim == 1 else view.cast("B")


class TorchTensor:
    """A torch tensor as a TensorSource. A tensor that is not contiguous, or not on the CPU, is copied when read."""

    def __init__(self, name: str, tensor: torch.Tensor) -> None:
        import torch

        if not isinstance(tensor, torch.Tensor):
            raise UnsupportedTensor("torch", f"a {type(tensor).__name__} is no tensor", tensor=name)
        self._tensor = tensor.detach()
        self._name = name
        self._dtype = str(tensor.dtype).removeprefix("torch.")
        if tensor.layout is not torch.strided or tensor.is_quantized or tensor.is_meta:
            raise UnsupportedTensor("torch", "a sparse, quantised or meta tensor has no plain bytes", tensor=name)
        if from_torch_name(self._dtype) is None:
            raise UnsupportedTensor("torch", f"dtype {self._dtype} cannot be sent", tensor=name)

    @property
    def name(self) -> str:
        return self._name

    @property
    def dtype(self) -> str:
        return self._dtype

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self._tensor.shape)

    @property
    def nbytes(self) -> int:
        return math.prod(self._tensor.shape) * self._tensor.element_size()

    def read(self) -> memoryview:
        """See TensorSource."""
        import torch

        if self.nbytes == 0:
            return memoryview(b"")
        # A conjugated or negated view keeps its bits as they were; numpy knows neither bfloat16 nor fp8, but bytes.
        plain = self._tensor.resolve_conj().resolve_neg().contiguous().cpu()
        return plain.reshape(-1).view(torch.uint8).numpy().data


def from_torch(tensors: Mapping[str, torch.Tensor] | Iterable[tuple[str, torch.Tensor]]) -> list[TorchTensor]:
    """TensorSources of a state dict, or of `model.named_parameters()`, in the same order.

    Raises UnsupportedTensor, which names the tensor.
    """
    pairs = tensors.items() if isinstance(tensors, Mapping) else tensors
    return [TorchTensor(name, tensor) for name, tensor in pairs]
