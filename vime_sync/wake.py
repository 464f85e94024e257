"""Waking a selector from another thread."""

from __future__ import annotations

import contextlib
import socket


class Wake:
    """A pair of sockets: `up` makes the one that a selector watches readable. Safe from any thread, closed or not."""

    def __init__(self) -> None:
        self._watched, self._pulled = socket.socketpair()
        self._watched.setblocking(False)
        self._pulled.setblocking(False)

    def fileno(self) -> int:
        """The descriptor to register for reading."""
        return self._watched.fileno()

    def up(self) -> None:
        """Wakes the selector."""
        with contextlib.suppress(OSError):  # full: it is awake already; closed: nobody waits any more
            self._pulled.send(b"w")

    def drain(self) -> None:
        """Makes it unreadable again."""
        with contextlib.suppress(OSError):
            while self._watched.recv(4096):
                pass

    def close(self) -> None:
        """Closes both ends."""
        self._watched.close()
        self._pulled.close()
