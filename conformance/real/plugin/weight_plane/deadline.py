"""A moment on the monotonic clock. Every wait of the plane has one."""

from __future__ import annotations

import time

# socket.settimeout(0) would mean "do not block at all"; this still means "now", as a timeout.
SMALLEST_WAIT = 0.001


class Deadline:
    """`seconds` from now. Share one among the steps of an operation, so that they cannot add up to more."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._end = time.monotonic() + seconds

    def remaining(self) -> float:
        """Seconds left. Raises `TimeoutError` when none are."""
        left = self._end - time.monotonic()
        if left <= 0:
            raise TimeoutError(f"the deadline of {self.seconds:g} s has passed")
        return max(left, SMALLEST_WAIT)
