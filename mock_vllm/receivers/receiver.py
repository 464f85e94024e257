"""The seam between a worker and the way in which tensors reach it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from mock_vllm.errors import WorkerError

PlaneEvent = Callable[[str, str], None]
"""Called with an event's name (docs/mock-routes.md) and its detail, at the moment it happens."""

Sink = Callable[[memoryview], None]
"""Takes the next bytes of a broadcast; the memory is reused after the call."""


class PlaneError(WorkerError):
    """The data plane failed: nobody joined, a mismatch ran into the deadline, the peer left, or it was abandoned."""


class Receiver(Protocol):
    """One rank's end of one transfer group. Used by a single worker thread, except for `abandon`."""

    delivers_bytes: bool

    def join(self, address: str, port: int, rank: int, world_size: int) -> None:
        """Meet the trainer; blocks until every rank is there. Raises PlaneError."""

    def broadcast(self, nbytes: int, sink: Sink) -> None:
        """Receive one broadcast of `nbytes` bytes into `sink`, piece by piece. Raises PlaneError."""

    def abandon(self) -> None:
        """End what `join` or `broadcast` is waiting for, from another thread."""

    def close(self) -> None:
        """Leave the group."""


ReceiverFactory = Callable[[PlaneEvent], Receiver]
"""Makes a fresh receiver for each init."""
