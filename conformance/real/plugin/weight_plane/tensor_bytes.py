"""A CPU tensor's memory as bytes, without copying."""

from __future__ import annotations

import hashlib
from typing import Any

import torch

_TEXT_PREFIX = "torch."


def dtype_name(dtype: torch.dtype) -> str:
    """The torch attribute name, such as `bfloat16`."""
    return str(dtype).removeprefix(_TEXT_PREFIX)


def memory(tensor: torch.Tensor) -> memoryview:
    """The bytes that NCCL would touch: `numel` elements from the tensor's first one on, whatever its strides.

    Writable when the tensor is. 0-dim and empty tensors are fine. Raises RuntimeError (torch's) when the storage holds
    fewer than `numel` elements behind that address, as an expanded tensor's does.
    """
    flat = tensor.detach().as_strided((tensor.numel(),), (1,)).view(torch.uint8)
    array: Any = flat.numpy()
    return memoryview(array)


def sha256(tensor: torch.Tensor) -> str:
    """Hex digest of the raw bytes in row-major order, little-endian as all machines that this runs on are."""
    return hashlib.sha256(memory(tensor.contiguous())).hexdigest()
