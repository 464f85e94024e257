"""One process at a time for each release: the lock ends with the process that holds it, however that ends."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from conformance.real.errors import BusyError

_POLL_SECONDS = 0.2


@contextmanager
def locked(
    folder: Path, version: str, deadline: float, waiting: Callable[[str], None] = lambda _holder: None
) -> Iterator[None]:
    """Holds ``folder/.VERSION.lock``; the folder is made. ``waiting`` is called once, with the holder's process id.

    ``deadline`` in seconds. Raises BusyError when it passes, OSError when the file cannot be made.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f".{version}.lock"
    end = time.monotonic() + deadline
    told = False
    with path.open("a+") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                holder = path.read_text().strip()
                if time.monotonic() >= end:
                    raise BusyError(version, holder, deadline) from None
                if not told:
                    waiting(holder)
                    told = True
                time.sleep(_POLL_SECONDS)
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield
        file.truncate(0)
