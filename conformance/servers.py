"""The servers of one run: one that was found, or a pool that starts them as the cases need them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from typing import Protocol

from conformance.case import USUAL, Case, Launch
from conformance.targets.base import Target, TargetError

StartServer = Callable[[Launch, threading.Event], AbstractContextManager[Target]]
"""Starts a server, gives up when the event is set. Raises TargetError on entering; ends the server on leaving."""


CASES_WHILE_ONE_STARTS = 120
"""So many cases before the end of one server the next one starts: what runs while a vLLM starts on two cores."""


class Servers(Protocol):
    """Where the runner gets its servers."""

    starts_its_own: bool

    def plan(self, cases: Sequence[Case]) -> list[Case]:
        """Told which cases will run; returns them in the order in which they must."""

    def target_for(self, case: Case) -> Target:
        """The server for a case. Raises TargetError when none can be had."""

    def after(self, case: Case) -> str | None:
        """Told that a case has run; returns why its server could not be brought back to idle, if it could not."""

    def close(self) -> None:
        """Ends what was started."""


def without_group_first(cases: Sequence[Case]) -> list[Case]:
    """Cases that need a server without a group come first: a server never leaves its group again."""
    return sorted(cases, key=lambda case: "no group" not in case.needs)


class OneServer:
    """A server that somebody else started: it stays as it is, and nothing can be done when a case spoils it."""

    starts_its_own = False

    def __init__(self, target: Target) -> None:
        self.target = target

    def plan(self, cases: Sequence[Case]) -> list[Case]:
        """Cases that need no group first."""
        return without_group_first(cases)

    def target_for(self, case: Case) -> Target:  # noqa: ARG002 - the one server is every case's
        """The one server."""
        return self.target

    def after(self, case: Case) -> str | None:  # noqa: ARG002
        """Nothing: the next case's reset says what is wrong."""
        return None

    def close(self) -> None:
        """Nothing was started."""


def segments(cases: Sequence[Case]) -> list[tuple[Launch, list[Case]]]:
    """Which cases share a server: one for each launch, usual ones first, and one for each further spoiling case."""
    launches = sorted({case.launch for case in cases}, key=lambda launch: (launch != USUAL, str(launch)))
    found: list[tuple[Launch, list[Case]]] = []
    for launch in launches:
        own = [case for case in cases if case.launch == launch]
        shared = without_group_first([case for case in own if not case.spoils])
        spoiling = [case for case in own if case.spoils]
        # The last thing that happens to the shared server may be its end.
        found.append((launch, [*shared, *spoiling[:1]]))
        found += [(launch, [case]) for case in spoiling[1:]]
    return found


@dataclass
class _Started:
    target: Target
    stack: ExitStack


class Pool:
    """At most two servers: the one in use, and the next one, which starts while cases run."""

    starts_its_own = True

    def __init__(self, start: StartServer) -> None:
        self._start = start
        self._stop = threading.Event()
        self._starter = ThreadPoolExecutor(1, thread_name_prefix="conformance-server")
        self._segments: list[tuple[Launch, list[Case]]] = []
        self._segment_of: dict[str, int] = {}
        self._at = -1
        self._done = 0
        self._current: _Started | None = None
        self._next: tuple[Launch, Future[_Started]] | None = None
        self._failed: str | None = None
        self.replaced: list[str] = []

    def plan(self, cases: Sequence[Case]) -> list[Case]:
        """Groups the cases by server, and begins to start the first one."""
        self._segments = segments(cases)
        self._segment_of = {case.id: index for index, (_, own) in enumerate(self._segments) for case in own}
        self._start_next(0)
        return [case for _, own in self._segments for case in own]

    def target_for(self, case: Case) -> Target:
        """The server of the case's segment. Raises TargetError when it cannot be started: once tried, never again."""
        index = self._segment_of[case.id]
        if index != self._at:
            self._retire()
            self._at, self._done, self._failed = index, 0, None
        if self._failed is not None:
            raise TargetError(self._failed)
        if self._current is None:
            launch = self._segments[index][0]
            try:
                self._current = self._take(launch)
            except TargetError as error:
                self._failed = str(error)
                raise
        if len(self._segments[index][1]) - self._done <= CASES_WHILE_ONE_STARTS:
            self._start_next(index + 1)
        return self._current.target

    def after(self, case: Case) -> str | None:
        """Resets the server; one that cannot be reset, or that the case was meant to spoil, is given up."""
        self._done += 1
        if self._current is None:
            return None
        if case.spoils:
            self._retire()
            return None
        try:
            self._current.target.reset()
        except TargetError as error:
            self.replaced.append(case.id)
            self._retire()
            return str(error)
        return None

    def close(self) -> None:
        """Ends both servers, also one that is still starting."""
        self._stop.set()
        self._retire()
        if self._next is not None and not self._next[1].cancel() and self._next[1].exception() is None:
            self._next[1].result().stack.close()
        self._starter.shutdown()

    def _begin(self, launch: Launch) -> _Started:
        stack = ExitStack()
        return _Started(stack.enter_context(self._start(launch, self._stop)), stack)

    def _start_next(self, index: int) -> None:
        if self._next is None and index < len(self._segments):
            launch = self._segments[index][0]
            self._next = (launch, self._starter.submit(self._begin, launch))

    def _take(self, launch: Launch) -> _Started:
        taken, self._next = self._next, None
        if taken is None:
            return self._starter.submit(self._begin, launch).result()
        if taken[0] == launch:
            return taken[1].result()
        # A replacement was needed before the planned one: that one would be a third server.
        if taken[1].exception() is None:
            taken[1].result().stack.close()
        return self._starter.submit(self._begin, launch).result()

    def _retire(self) -> None:
        if self._current is not None:
            self._current.stack.close()
            self._current = None
