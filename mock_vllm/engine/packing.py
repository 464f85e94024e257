"""vLLM's packed buffers: where they are cut, and how one broadcast becomes several tensors.

The rule (vLLM 0.21.0, `vllm.distributed.weight_transfer.packed_tensor.packed_broadcast_consumer`): tensors are appended
in list order; once the sum *exceeds* the buffer size the buffer is full; what is left at the end is a buffer too.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from mock_vllm.engine.dtypes import DType, find_dtype
from mock_vllm.engine.shapes import check_view
from mock_vllm.errors import WorkerError


@dataclass(frozen=True)
class Announced:
    """One tensor as the client announced it; `shape` in elements, `nbytes` in bytes."""

    name: Any
    dtype: DType
    shape: tuple[int, ...]
    nbytes: int


def announced_packed(names: Any, dtype_names: Any, shapes: Any) -> Iterator[Announced]:
    """Yield the tensors of a packed update, one by one as vLLM looks at them.

    Raises:
        WorkerError: torch lacks a dtype, or a shape is not a list of numbers.
    """
    for name, dtype_name, shape in zip(names, dtype_names, shapes, strict=False):
        dtype = find_dtype(dtype_name)
        try:
            nbytes = math.prod(shape) * dtype.itemsize
            yield Announced(name, dtype, tuple(shape), nbytes)
        except TypeError as error:
            raise WorkerError(str(error)) from None


def cut_buffers(
    tensors: Iterable[Announced], buffer_size_bytes: Any, num_buffers: Any, no_buffers: str = "list index out of range"
) -> Iterator[list[Announced]]:
    """Yield the tensors of each buffer, in order.

    Args:
        tensors: what the update announces.
        buffer_size_bytes, num_buffers: as the client gave them.
        no_buffers: what the release says when the number of buffers is 0 or below.

    Raises:
        WorkerError: the two numbers are not what vLLM can work with, worded as Python does.
    """
    try:
        if not range(num_buffers):
            raise WorkerError(no_buffers)
        bucket: list[Announced] = []
        filled = 0
        for tensor in tensors:
            bucket.append(tensor)
            filled += tensor.nbytes
            if filled > buffer_size_bytes:
                yield bucket
                bucket, filled = [], 0
        if bucket:
            yield bucket
    except TypeError as error:
        raise WorkerError(str(error)) from None


def check_unpacking(bucket: list[Announced], takes_scalars: bool = False) -> None:
    """Fail where torch cannot view a piece of the buffer as its tensor.

    Args:
        bucket: the tensors of one buffer, in order.
        takes_scalars: the release unpacks tensors without dimensions.

    Raises:
        WorkerError: a tensor begins at an offset that is no multiple of its item size, or its shape cannot be viewed.
    """
    offset = 0
    for tensor in bucket:
        itemsize = tensor.dtype.itemsize
        if itemsize > 1 and offset % itemsize:
            raise WorkerError(
                f"self.storage_offset() must be divisible by {itemsize} to view Byte as {tensor.dtype.scalar} "
                f"(different element sizes), but got {offset}"
            )
        check_view(tensor.shape, takes_scalars)
        offset += tensor.nbytes
