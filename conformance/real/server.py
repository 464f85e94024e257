"""A running real server, and how it is waited for and ended."""

from __future__ import annotations

import os
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from conformance.real.errors import ServerDeadlineError, ServerDiedError
from conformance.real.guarded import Guarded
from conformance.real.tail import last_lines

GRACE_SECONDS = 10.0
"""How long a server has to end by itself after a SIGTERM; a vLLM takes about two seconds."""
_POLL_SECONDS = 0.1


@dataclass(frozen=True)
class RunningServer:
    """A server that was healthy after ``seconds``.

    ``pid`` is the process of its HTTP side; ``log`` holds what all its processes print.
    """

    url: str
    log: Path
    pid: int
    seconds: float
    guarded: Guarded

    def alive(self) -> bool:
        """Whether the server's process is there. A vLLM ends it within seconds of its engine's death."""
        if self.guarded.gone():
            return False
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        return True

    def tail(self, lines: int = 30) -> list[str]:
        """The last lines of the log."""
        return last_lines(self.log, lines)


def healthy(url: str, seconds: float = 2.0) -> bool:
    """Whether ``GET url/health`` answers 200 within ``seconds``. Proxies of the environment are not asked."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(f"{url}/health", timeout=seconds) as answer:
            return int(answer.status) == 200
    except (OSError, ValueError):
        return False


@contextmanager
def running(
    command: Sequence[str],
    url: str,
    log: Path,
    *,
    env: Mapping[str, str],
    deadline: float,
    grace: float = GRACE_SECONDS,
    waiting: Callable[[float], None] = lambda _seconds: None,
) -> Iterator[RunningServer]:
    """Starts ``command``, waits until ``url`` is healthy, yields, and ends every process that came of it.

    ``deadline`` and ``grace`` in seconds; ``waiting`` is called with the seconds so far, several times a second. The
    server is ended also when this process is killed: see `conformance.real.guardian`.
    Raises ServerDiedError, ServerDeadlineError, OSError when the log cannot be written.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    with log.open("wb") as output:
        guarded = Guarded(command, output, env, grace)
    try:
        pid = guarded.pid(min(30.0, deadline))
        while pid is None or not healthy(url, max(0.1, min(2.0, began + deadline - time.monotonic()))):
            seconds = time.monotonic() - began
            status = guarded.ended(_POLL_SECONDS)
            if status is not None:
                raise ServerDiedError(status, seconds, log, last_lines(log))
            if seconds >= deadline:
                raise ServerDeadlineError(deadline, url, log, last_lines(log))
            waiting(seconds)
        yield RunningServer(url, log, pid, time.monotonic() - began, guarded)
    finally:
        guarded.stop()
