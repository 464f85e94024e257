"""What torch says to a shape that is none, without torch (2.11 as vLLM 0.21.0 pins it, 2.13 as 0.32.0; recorded)."""

from __future__ import annotations

import math
from typing import Any

from mock_vllm.errors import WorkerError
from mock_vllm.profiles.profile import TorchTexts

_EMPTY_SIGNATURES = (
    " * (tuple of ints size, *, tuple of names names, torch.memory_format memory_format = None, "
    "torch.dtype dtype = None, "
    "torch.layout layout = None, torch.device device = None, bool pin_memory = False, bool requires_grad = False)\n"
    " * (tuple of ints size, *, torch.memory_format memory_format = None, Tensor out = None, torch.dtype dtype = None, "
    "torch.layout layout = None, torch.device device = None, bool pin_memory = False, bool requires_grad = False)\n"
)
_LARGEST_ALLOCATION = 1 << 43
"""Bytes; no machine grants more, and waiting for such a broadcast would only hide the mistake."""


def check_empty(size: Any, itemsize: int, texts: TorchTexts = TorchTexts.TORCH_2_11) -> tuple[int, ...]:
    """Return the shape that `torch.empty(size)` makes; `size` is a list of dimensions or one number.

    Raises:
        WorkerError: torch would refuse the shape, or could not allocate it.
    """
    shape = [size] if _is_dimension(size) else size
    if not isinstance(shape, list) or not all(_is_dimension(dimension) for dimension in shape):
        raise _refuse_size(size, texts)
    for position, dimension in enumerate(shape):
        if not -(1 << 63) <= dimension < 1 << 63:
            raise WorkerError(
                f"empty(): argument 'size' failed to unpack the object at pos {position + 1} with error "
                '"Overflow when unpacking long long'
            )
        if dimension < 0:
            raise WorkerError(f"Trying to create tensor with negative dimension {dimension}: {shape}")
    nbytes = math.prod(shape) * itemsize
    if nbytes >= 1 << 63:
        raise WorkerError(f"Storage size calculation overflowed with sizes={shape}")
    if nbytes > _LARGEST_ALLOCATION:
        raise WorkerError(
            "[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory: "
            f"you tried to allocate {nbytes} bytes. Error code 12 (Cannot allocate memory)"
        )
    return tuple(shape)


def refuse_module_as_dtype(size: Any, texts: TorchTexts) -> WorkerError:
    """Return torch's complaint about a dtype that is a module."""
    if texts is TorchTexts.TORCH_2_11:
        return _no_combination(size, "module")
    return WorkerError("empty(): argument 'dtype' must be torch.dtype, not module")


def _refuse_size(size: Any, texts: TorchTexts) -> WorkerError:
    if texts is TorchTexts.TORCH_2_11:
        return _no_combination(size, "torch.dtype")
    wants = "empty(): argument 'size' (position 1) must be tuple of ints"
    if not isinstance(size, list):
        return WorkerError(f"{wants}, not {type(size).__name__}")
    position = next(index for index, dimension in enumerate(size) if not _is_dimension(dimension))
    return WorkerError(f"{wants}, but found element of type {type(size[position]).__name__} at pos {position}")


def _no_combination(size: Any, dtype_class: str) -> WorkerError:
    return WorkerError(
        f"empty() received an invalid combination of arguments - got ({type(size).__name__}, device=str, "
        f"dtype={dtype_class}), but expected one of:\n{_EMPTY_SIGNATURES}"
    )


def check_view(shape: tuple[Any, ...], takes_scalars: bool = False) -> None:
    """Fail where a view as this shape does, for a shape of the right number of elements.

    Args:
        shape: in elements.
        takes_scalars: the release passes the shape as one argument, so that it may be empty.

    Raises:
        WorkerError: the shape has no dimensions, one that is no number, or two that are negative.
    """
    if not shape and takes_scalars:
        return
    if not shape:
        raise WorkerError(_view_error("", ""))
    if isinstance(shape[0], bool):
        kinds = ", ".join(type(dimension).__name__ for dimension in shape)
        invalid = f"      didn't match because some of the arguments have invalid types: (!{kinds}!)\n"
        raise WorkerError(_view_error(kinds, invalid))
    for index, dimension in enumerate(shape):
        if dimension < 0 and (dimension != -1 or min(shape[:index], default=0) == -1):
            raise WorkerError(f"invalid shape dimension {dimension} at index {index} of shape {list(shape)}")


def _is_dimension(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _view_error(given: str, invalid: str) -> str:
    return (
        f"view() received an invalid combination of arguments - got ({given}), but expected one of:\n"
        f" * (torch.dtype dtype)\n{invalid} * (tuple of ints size)\n{invalid}"
    )
