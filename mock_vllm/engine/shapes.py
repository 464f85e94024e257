"""What `torch.empty(shape)` says to a shape that is none, without torch (torch 2.11, as pinned by vLLM 0.21.0)."""

from __future__ import annotations

import math
from typing import Any

from mock_vllm.errors import WorkerError


def check_empty(shape: Any) -> int:
    """Return the number of elements of a tensor of this shape; 1 for no dimensions.

    Raises:
        WorkerError: torch would refuse the shape.
    """
    if not isinstance(shape, list):
        raise WorkerError(f"empty(): argument 'size' (position 1) must be tuple of ints, not {type(shape).__name__}")
    for position, size in enumerate(shape):
        if not isinstance(size, int):
            raise WorkerError(
                "empty(): argument 'size' (position 1) must be tuple of ints, "
                f"but found element of type {type(size).__name__} at pos {position}"
            )
        if size < 0:
            raise WorkerError(f"Trying to create tensor with negative dimension {size}: {shape}")
    return math.prod(shape)
