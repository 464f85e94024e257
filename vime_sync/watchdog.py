"""The total deadline of a call: when it passes, the socket is shut.

The timeouts of `requests` bound single reads, so a server that sends one byte of a header a second outlives them all.
A shut socket ends any read or write on it at once.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from types import TracebackType


class Watchdog:
    """Shuts the sockets attached to it after `seconds`, or when `cancel` is called from any thread.

    It holds a duplicate of the file descriptor: shutting the duplicate shuts the connection, a TLS layer that takes the
    socket over does not matter, and a descriptor that was closed and given to somebody else cannot be hit.
    """

    def __init__(self, seconds: float) -> None:
        self.expired = False
        self.cancelled = False
        self._held: socket.socket | None = None
        self._lock = threading.Lock()
        self._timer = threading.Timer(seconds, self._expire)
        self._timer.daemon = True

    def __enter__(self) -> Watchdog:
        self._timer.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._timer.cancel()
        with self._lock:
            self._release()

    def attach(self, sock: socket.socket) -> None:
        """Makes `sock` the socket to shut. Shuts it at once when the moment has passed already."""
        with self._lock:
            self._release()
            self._held = socket.socket(fileno=os.dup(sock.fileno()))
            if self.expired or self.cancelled:
                self._shut()

    def cancel(self) -> None:
        """Ends the call now, as its deadline would."""
        with self._lock:
            self.cancelled = True
            self._shut()

    def _expire(self) -> None:
        with self._lock:
            self.expired = True
            self._shut()

    def _shut(self) -> None:
        if self._held is not None:
            with contextlib.suppress(OSError):  # the peer may have been quicker
                self._held.shutdown(socket.SHUT_RDWR)

    def _release(self) -> None:
        if self._held is not None:
            self._held.close()
            self._held = None
