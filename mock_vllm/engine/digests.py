"""Turns the bytes of a broadcast into tensors with digests, piece by piece as they arrive."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from mock_vllm.engine.packing import Announced


@dataclass(frozen=True)
class Received:
    """One tensor that arrived.

    Attributes:
        announced: its name, dtype and shape.
        sha256: hex digest of its raw bytes, or None when the receiver delivers none.
        data: the raw bytes, when the mock was told to keep them.
    """

    announced: Announced
    sha256: str | None
    data: bytes | None


class TensorSplitter:
    """A sink that cuts one broadcast into its tensors without holding more than it must.

    Args:
        tensors: what the broadcast holds, in order and without gaps.
        keep_bytes: keep the raw bytes besides the digests.
    """

    def __init__(self, tensors: Sequence[Announced], keep_bytes: bool) -> None:
        self._tensors = tensors
        self._keep = keep_bytes
        self._index = 0
        self._open()
        self.received: list[Received] = []

    def __call__(self, piece: memoryview) -> None:
        """Take the next bytes of the broadcast."""
        while len(piece):
            self._close_full()
            taken = piece[: self._missing]
            self._digest.update(taken)
            if self._keep:
                self._data += taken
            self._missing -= len(taken)
            piece = piece[len(taken) :]

    def finish(self, has_bytes: bool) -> list[Received]:
        """Return the tensors; call it once after the last byte. Without bytes the digests are None."""
        if not has_bytes:
            return [Received(tensor, None, None) for tensor in self._tensors]
        self._close_full()
        return self.received

    def _open(self) -> None:
        self._digest = hashlib.sha256()
        self._data = bytearray()
        self._missing = self._tensors[self._index].nbytes if self._index < len(self._tensors) else 0

    def _close_full(self) -> None:
        """Close every tensor that has all its bytes: the current one, and empty ones behind it."""
        while self._index < len(self._tensors) and self._missing == 0:
            data = bytes(self._data) if self._keep else None
            self.received.append(Received(self._tensors[self._index], self._digest.hexdigest(), data))
            self._index += 1
            self._open()
