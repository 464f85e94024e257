"""A safetensors file, mapped: metadata checked, bytes handed out without a copy.

The format: 8 bytes little-endian length N of the header, N bytes of JSON, then the data. The header maps each name to
`dtype`, `shape` and `data_offsets` [begin, end) into the data, which they cover without gap or overlap. The package
`safetensors` hands out the tensors of a framework; here only the mapped bytes are wanted, and no framework.
"""

from __future__ import annotations

import contextlib
import json
import math
import mmap
import os
from pathlib import Path
from types import TracebackType
from typing import Any

from vime_sync.dtypes import SUB_BYTE_NAMES, Dtype, from_safetensors
from vime_sync.errors import BrokenHeader, CheckpointError, UnsupportedTensor
from vime_sync.regular_files import open_regular
from vime_sync.tensors import is_unicode

# The limit of the format's own implementation.
LONGEST_HEADER = 100_000_000


class SafetensorsEntry:
    """One tensor of a file. A TensorSource."""

    def __init__(self, file: SafetensorsFile, name: str, dtype: Dtype, shape: tuple[int, ...], begin: int, end: int):
        self._file = file
        self._begin = begin
        self._end = end
        self._dtype = dtype
        self._name = name
        self._shape = shape

    @property
    def name(self) -> str:
        return self._name

    @property
    def dtype(self) -> str:
        return self._dtype.name

    @property
    def shape(self) -> tuple[int, ...]:
        return self._shape

    @property
    def nbytes(self) -> int:
        return self._end - self._begin

    @property
    def path(self) -> Path:
        """The file that holds it."""
        return self._file.path

    def read(self) -> memoryview:
        """The mapped bytes. Raises CheckpointError when the file became shorter or was closed."""
        return self._file.view(self._begin, self._end)


class SafetensorsFile:
    """A mapped file; `entries` by name, in the order of their bytes.

    Raises MissingFile, BrokenHeader, UnsupportedTensor, CheckpointError; each names the file, and the tensor where one
    is at fault.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            with open_regular(path) as opened:
                self._size = os.fstat(opened.fileno()).st_size
                if self._size < 8:
                    raise self._broken(f"{self._size} bytes are too few for a safetensors file")
                self._map = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)
        except OSError as error:
            raise CheckpointError(str(path), f"cannot be read ({error.strerror or error})") from None
        self._bytes = memoryview(self._map)
        try:
            self._data = 8 + self._header_length()
            self.entries = self._checked(self._header())
        except CheckpointError:
            self.close()
            raise

    def __enter__(self) -> SafetensorsFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Lets the mapping go; views that are still held keep it alive until they are dropped."""
        # Both refuse while a view that was handed out lives.
        with contextlib.suppress(BufferError):
            self._bytes.release()
        with contextlib.suppress(BufferError):
            self._map.close()

    def view(self, begin: int, end: int) -> memoryview:
        """Bytes [begin, end) of the data. Raises CheckpointError when the file is closed or has shrunk."""
        # To touch a mapped page that the file no longer has kills the process.
        try:
            size = self.path.stat().st_size
        except OSError as error:
            raise CheckpointError(str(self.path), f"disappeared while in use ({error.strerror})") from None
        if size < self._size:
            raise CheckpointError(str(self.path), f"shrank from {self._size} to {size} bytes while in use")
        try:
            return self._bytes[self._data + begin : self._data + end]
        except ValueError:
            raise CheckpointError(str(self.path), "is closed") from None

    def _header_length(self) -> int:
        length = int.from_bytes(self._bytes[:8], "little")
        if length > LONGEST_HEADER:
            raise self._broken(f"its first 8 bytes announce a header of {length} bytes; is this a safetensors file?")
        if length > self._size - 8:
            raise self._broken(f"announces a header of {length} bytes and has {self._size - 8} left; cut short?")
        return length

    def _header(self) -> dict[str, Any]:
        def no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
            found: dict[str, Any] = {}
            for name, value in pairs:
                if name in found:
                    raise self._broken(f"the header names {name!r} twice")
                found[name] = value
            return found

        try:
            header = json.loads(bytes(self._bytes[8 : self._data]).decode("utf-8"), object_pairs_hook=no_duplicates)
        except (ValueError, RecursionError) as error:
            raise self._broken(f"the header is not JSON ({error})") from None
        if not isinstance(header, dict):
            raise self._broken("the header is not a JSON object")
        header.pop("__metadata__", None)
        return header

    def _checked(self, header: dict[str, Any]) -> dict[str, SafetensorsEntry]:
        entries = sorted((self._entry(name, fields) for name, fields in header.items()), key=_by_position)
        end = 0
        for entry in entries:
            if entry._begin != end:
                what = "overlaps the tensor before it" if entry._begin < end else "leaves a gap before it"
                raise self._broken(f"begins at byte {entry._begin} of the data and {what} ({end})", entry.name)
            end = entry._end
        if end != self._size - self._data:
            raise self._broken(f"holds {self._size - self._data} bytes of data where its header describes {end}")
        return {entry.name: entry for entry in entries}

    def _entry(self, name: str, fields: object) -> SafetensorsEntry:
        if not is_unicode(name):
            raise self._broken("is named by half of a surrogate pair, which is no character", name)
        if not isinstance(fields, dict):
            raise self._broken("is not described by an object", name)
        dtype_name, shape, offsets = fields.get("dtype"), fields.get("shape"), fields.get("data_offsets")
        if not (isinstance(shape, list) and all(_is_size(size) for size in shape)):
            raise self._broken(f"has no valid shape: {shape!r}"[:200], name)
        if not (isinstance(offsets, list) and len(offsets) == 2 and all(_is_size(offset) for offset in offsets)):
            raise self._broken(f"has no valid data_offsets: {offsets!r}"[:200], name)
        if not isinstance(dtype_name, str):
            raise self._broken(f"has no valid dtype: {dtype_name!r}"[:200], name)
        dtype = from_safetensors(dtype_name)
        if dtype is None:
            why = "elements smaller than a byte" if dtype_name in SUB_BYTE_NAMES else "unknown to this client"
            raise UnsupportedTensor(str(self.path), f"dtype {dtype_name[:40]!r} ({why})", tensor=name)
        begin, end = offsets
        available = self._size - self._data
        if begin > end or end > available:
            raise self._broken(f"lies at bytes {begin} to {end} of {available} bytes of data", name)
        needed = math.prod(shape) * dtype.item_size
        if needed != end - begin:
            raise self._broken(f"has {end - begin} bytes where {dtype_name} {shape} needs {needed}"[:300], name)
        return SafetensorsEntry(self, name, dtype, tuple(shape), begin, end)

    def _broken(self, why: str, tensor: str | None = None) -> BrokenHeader:
        return BrokenHeader(str(self.path), why, tensor=tensor, next_step="write or download the file again")


def _by_position(entry: SafetensorsEntry) -> tuple[int, int]:
    return entry._begin, entry._end


def _is_size(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
