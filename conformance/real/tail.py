"""The end of a log."""

from __future__ import annotations

import os
from pathlib import Path

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
