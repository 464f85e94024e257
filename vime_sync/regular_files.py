"""Opening what a checkpoint consists of, without ever waiting for somebody to write it."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import BinaryIO

from vime_sync.errors import CheckpointError, MissingFile


def open_regular(path: Path) -> BinaryIO:
    """`path`, open for reading. Raises MissingFile; CheckpointError for what cannot be read or is no regular file.

    To open a FIFO waits for its writer, and to open a device may set it in motion: the kind is asked for first. It is
    asked for again of what was opened, since a path may change hands in between.
    """
    try:
        _check(path, path.stat().st_mode)
        opened = os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb")
        try:
            _check(path, os.fstat(opened.fileno()).st_mode)
        except CheckpointError:
            opened.close()
            raise
    except FileNotFoundError:
        raise MissingFile(str(path), "no such file", next_step="check the path") from None
    except OSError as error:
        raise CheckpointError(str(path), f"cannot be read ({error.strerror or error})") from None
    return opened


def _check(path: Path, mode: int) -> None:
    if not stat.S_ISREG(mode):
        advice = "give a safetensors file, an index, or the directory that holds one"
        raise CheckpointError(str(path), "is no regular file", next_step=advice)
