"""Tensors as a sync needs them: a name, metadata, and bytes on demand."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

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

    def read(self) -> memoryview | bytes | bytearray:
        """The bytes, little-endian and row-major, `nbytes` of them. They stay as they are while held."""
        ...


def is_unicode(text: str) -> bool:
    """Whether `text` can be written as UTF-8, as a request or a file would."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:  # half of a surrogate pair
        return False
    return True


def check_source(tensor: Any) -> None:
    """Raises UnsupportedTensor, which names it, for a source whose metadata is missing or contradicts itself.

    The engine reserves room by dtype and shape, so other bytes must be found out before it is asked to pause. A dtype
    that is not known is left to `choose_form`, which says which release it fails on.
    """
    try:
        name, dtype, shape, nbytes = tensor.name, tensor.dtype, tensor.shape, tensor.nbytes
        tensor.read  # noqa: B018 (only whether it is there)
    except AttributeError as error:
        raise UnsupportedTensor("source", f"{type(tensor).__name__} is no TensorSource ({error})") from None
    if not isinstance(name, str) or not is_unicode(name):
        raise UnsupportedTensor("source", "the name is not a string of Unicode characters", tensor=name)
    if not isinstance(dtype, str):
        advice = "state it as torch names it, such as 'bfloat16'"
        raise UnsupportedTensor("source", f"dtype {dtype!r:.100} is not a string", tensor=name, next_step=advice)
    if not isinstance(shape, (tuple, list)) or not all(_is_size(size) for size in shape):
        raise UnsupportedTensor("source", f"shape {shape!r:.200} is not a tuple of sizes from 0 on", tensor=name)
    known = from_torch_name(dtype)
    if known is None:
        return
    needed = math.prod(shape) * known.item_size
    if nbytes != needed:
        why = f"states {nbytes!r:.100} bytes where {dtype} {list(shape)} needs {needed}"
        raise UnsupportedTensor("source", why, tensor=name, next_step="correct nbytes, dtype or shape")


def read_checked(tensor: TensorSource) -> memoryview:
    """`tensor.read()` as flat bytes. Raises Mismatch when there are not `nbytes` of them.

    The engine would wait for the announced number until its deadline, so the other number must not be sent. Raises
    UnsupportedTensor for what is neither a memoryview nor bytes.
    """
    given: object = tensor.read()
    if not isinstance(given, (memoryview, bytes, bytearray)):
        why = f"read() gave {type(given).__name__}, neither a memoryview nor bytes"
        raise UnsupportedTensor("source", why, tensor=tensor.name)
    try:
        view = memoryview(given)
    except ValueError as error:
        raise UnsupportedTensor("source", f"read() gave an unusable view ({error})", tensor=tensor.name) from None
    if view.nbytes != tensor.nbytes:
        raise Mismatch(tensor.name, tensor.nbytes, view.nbytes)
    if view.format == "B" and view.ndim == 1 and view.c_contiguous:
        return view
    try:
        return view.cast("B")
    except (TypeError, ValueError):
        # Not contiguous, of a format with a byte order, or empty with several dimensions: only a copy is flat.
        return memoryview(view.tobytes())


def _is_size(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


class TorchTensor:
    """A torch tensor as a TensorSource. A tensor that is not contiguous, or not on the CPU, is copied when read."""

    def __init__(self, name: str, tensor: torch.Tensor) -> None:
        import torch

        if not isinstance(tensor, torch.Tensor):
            raise UnsupportedTensor("torch", f"{type(tensor).__name__} is no torch tensor", tensor=name)
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
