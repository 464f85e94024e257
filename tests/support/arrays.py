"""Tensors for tests, and safetensors files, written without torch, numpy or the package `safetensors`."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SAFETENSORS_NAMES = {
    "bool": "BOOL",
    "uint8": "U8",
    "int8": "I8",
    "int16": "I16",
    "int64": "I64",
    "float8_e5m2": "F8_E5M2",
    "float8_e4m3fn": "F8_E4M3",
    "bfloat16": "BF16",
    "float16": "F16",
    "float32": "F32",
    "float64": "F64",
}
ITEM_SIZES = {
    "bool": 1,
    "uint8": 1,
    "int8": 1,
    "float8_e5m2": 1,
    "float8_e4m3fn": 1,
    "int16": 2,
    "bfloat16": 2,
    "float16": 2,
    "float32": 4,
    "float64": 8,
    "int64": 8,
}


@dataclass(frozen=True)
class Array:
    """A TensorSource over bytes. The bytes count up from `seed`, unless given."""

    name: str
    dtype: str = "float32"
    shape: tuple[int, ...] = (2,)
    seed: int = 0
    content: bytes | None = None

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * ITEM_SIZES[self.dtype]

    def read(self) -> memoryview:
        if self.content is not None:
            return memoryview(self.content)
        pattern = bytes((self.seed + index) % 251 for index in range(251))
        return memoryview((pattern * (self.nbytes // 251 + 1))[: self.nbytes])


def raw_file(path: Path, header: Mapping[str, Any] | bytes, data: bytes = b"", length: int | None = None) -> Path:
    """A file in the form of safetensors, from a header that may be anything."""
    encoded = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes((len(encoded) if length is None else length).to_bytes(8, "little") + encoded + data)
    return path


def safetensors_file(path: Path, *arrays: Array) -> Path:
    """A valid file of these arrays."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    data = b""
    for array in arrays:
        content = bytes(array.read())
        header[array.name] = {
            "dtype": SAFETENSORS_NAMES[array.dtype],
            "shape": list(array.shape),
            "data_offsets": [len(data), len(data) + len(content)],
        }
        data += content
    return raw_file(path, header, data)


ASSORTED = [
    Array("scalar", "float32", (), seed=1),
    Array("matrix", "bfloat16", (300, 7), seed=2),
    Array("odd", "uint8", (7,), seed=3),
    Array("eight", "float8_e4m3fn", (33,), seed=4),
    Array("wide", "float32", (50, 50), seed=5),
    Array("mask", "bool", (5,), content=b"\1\0\1\1\0"),
    Array("short", "int16", (9,), seed=6),
    Array("long", "int64", (3,), seed=7),
    Array("empty", "float16", (0, 4)),
]
"""One of each kind that is handled in its own way: no dimensions, no elements, odd sizes, types that NCCL lacks."""
