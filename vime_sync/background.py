"""A blocking call on a thread of its own, so that this thread can send meanwhile."""

from __future__ import annotations

import concurrent.futures
import time
from collections.abc import Callable


def in_background(function: Callable[[], None], on_done: Callable[[], None]) -> concurrent.futures.Future[None]:
    """Runs `function` on a new thread; `on_done` is called there when it ended, one way or the other.

    The thread ends when the call does, and every call of an engine has a deadline.
    """
    executor = concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix="vime-sync-call")
    future = executor.submit(function)
    future.add_done_callback(lambda _: on_done())
    executor.shutdown(wait=False)
    return future


def ended(call: concurrent.futures.Future[None], seconds: float) -> bool:
    """Whether the call ends within `seconds`."""
    return bool(concurrent.futures.wait([call], timeout=max(0.0, seconds)).done)


def until(deadline: float) -> float:
    """Seconds until a moment of `time.monotonic()`, not below 0."""
    return max(0.0, deadline - time.monotonic())
