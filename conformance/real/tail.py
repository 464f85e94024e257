"""The end of a log, and a log as it grows."""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO

_BLOCK_BYTES = 64 * 1024


def last_lines(path: Path, lines: int = 20) -> list[str]:
    """The last ``lines`` lines of a file; of a long one, those within its last 64 KiB. Empty when it cannot be read."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _BLOCK_BYTES))
            text = file.read().decode("utf-8", errors="replace")
    except OSError:
        return []
    return [line.rstrip() for line in text.splitlines() if line.strip()][-lines:]


class Follower:
    """Copies what is added to a file."""

    def __init__(self, path: Path, output: BinaryIO) -> None:
        self._path, self._output = path, output
        self._copied = 0

    def copy(self) -> None:
        """Writes what is new since the last call; nothing while there is no file. Raises OSError."""
        if not self._path.exists():
            return
        with self._path.open("rb") as file:
            file.seek(self._copied)
            while block := file.read(_BLOCK_BYTES):
                self._output.write(block)
                self._copied += len(block)
        self._output.flush()
