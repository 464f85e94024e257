"""Reads what a safetensors file says about its tensors; the bytes stay on disk."""

from __future__ import annotations

import hashlib
import json
import mmap
import struct
from dataclasses import dataclass
from pathlib import Path

from mock_vllm.engine.dtypes import BY_NAME, SAFETENSORS_NAMES, DType
from mock_vllm.errors import SettingsError

_LENGTH = struct.Struct("<Q")
_MAX_HEADER_BYTES = 100_000_000
"""The limit of the reference implementation."""


@dataclass(frozen=True)
class StoredTensor:
    """A tensor in a file: dtype, shape, and the absolute range of its bytes."""

    name: str
    dtype: DType
    shape: tuple[int, ...]
    file: Path
    begin: int
    end: int

    @property
    def nbytes(self) -> int:
        return self.end - self.begin

    def sha256(self) -> str:
        """Digest the raw bytes, through a map of the file."""
        if not self.nbytes:
            return hashlib.sha256().hexdigest()
        with self.file.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            view = memoryview(data)[self.begin : self.end]
            try:
                return hashlib.sha256(view).hexdigest()
            finally:
                view.release()

    def read(self) -> bytes:
        """Return the raw bytes."""
        with self.file.open("rb") as file:
            file.seek(self.begin)
            return file.read(self.nbytes)


def read_header(file: Path) -> dict[str, StoredTensor]:
    """Return the tensors of one file by name.

    Raises:
        SettingsError: the file is no safetensors file; the message says where it breaks.
    """
    size = file.stat().st_size
    with file.open("rb") as stream:
        head = stream.read(_LENGTH.size)
        if len(head) < _LENGTH.size:
            raise _broken(file, f"{size} bytes are too few for a safetensors header")
        (length,) = _LENGTH.unpack(head)
        if length > min(size - _LENGTH.size, _MAX_HEADER_BYTES):
            raise _broken(file, f"the header claims {length} bytes, the file has {size}")
        try:
            header = json.loads(stream.read(length))
            return {
                name: _stored(name, entry, file, _LENGTH.size + length, size)
                for name, entry in header.items()
                if name != "__metadata__"
            }
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise _broken(file, f"the header is not readable: {type(error).__name__}: {error}") from error


def _stored(name: str, entry: dict[str, object], file: Path, data_start: int, file_size: int) -> StoredTensor:
    dtype = BY_NAME[SAFETENSORS_NAMES[str(entry["dtype"])]]
    shape, offsets = entry["shape"], entry["data_offsets"]
    if not isinstance(shape, list) or not isinstance(offsets, list):
        raise TypeError(f"tensor {name}: shape and data_offsets must be lists")
    begin, end = (data_start + int(offset) for offset in offsets)
    if not data_start <= begin <= end <= file_size:
        raise ValueError(f"tensor {name} lies outside the file")
    return StoredTensor(name, dtype, tuple(int(size) for size in shape), file, begin, end)


def _broken(file: Path, reason: str) -> SettingsError:
    return SettingsError("MODEL", f"{file}: {reason}")
