"""A named tensor as raw bytes: what the suite sends, and what a server says it received."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from math import prod

ITEM_SIZES: dict[str, int] = {
    "bool": 1,
    "uint8": 1,
    "int8": 1,
    "int16": 2,
    "int32": 4,
    "int64": 8,
    "float8_e4m3fn": 1,
    "float8_e5m2": 1,
    "float16": 2,
    "bfloat16": 2,
    "float32": 4,
    "float64": 8,
}
"""Bytes per element, by the dtype's name as an attribute of torch (the form that ``dtype_names`` carries)."""


class TensorSizeError(ValueError):
    """The bytes of a tensor do not fill its shape."""

    def __init__(self, name: str, expected: int, actual: int) -> None:
        super().__init__(f"tensor {name!r} needs {expected} bytes for its shape and dtype, got {actual}")
        self.name = name
        self.expected = expected
        self.actual = actual


def byte_count(dtype: str, shape: tuple[int, ...]) -> int:
    """Bytes of a dense tensor; an empty ``shape`` is a scalar of one element. Raises KeyError for an unknown dtype."""
    return ITEM_SIZES[dtype] * prod(shape)


@dataclass(frozen=True)
class Tensor:
    """One tensor, row-major and little-endian.

    ``dtype`` is a torch attribute name, ``shape`` may be ``()`` (0-dim), ``data`` holds exactly
    ``byte_count(dtype, shape)`` bytes. Raises TensorSizeError when it does not, KeyError for an unknown dtype.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    data: bytes

    def __post_init__(self) -> None:
        expected = byte_count(self.dtype, self.shape)
        if len(self.data) != expected:
            raise TensorSizeError(self.name, expected, len(self.data))

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return len(self.data)

    @property
    def sha256(self) -> str:
        """Digest of the raw bytes, in hexadecimal."""
        return hashlib.sha256(self.data).hexdigest()
