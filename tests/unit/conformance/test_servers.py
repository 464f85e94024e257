"""The pool of servers: never more than two, the next one in time, and a spoiled one replaced."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from conformance.case import USUAL, Case, Launch
from conformance.servers import Pool, segments
from conformance.steps import Call
from conformance.targets.base import TargetError

pytestmark = pytest.mark.unit

OTHER = Launch(dev_mode=False)
CASE = Case("X-001", "a sentence", (Call("GET", "/x"),), "routes", "source")


def case(case_id: str, **fields: Any) -> Case:
    return replace(CASE, id=case_id, **fields)


@dataclass
class FakeServer:
    number: int
    launch: Launch
    resets: int = 0
    broken: bool = False

    def reset(self) -> None:
        self.resets += 1
        if self.broken:
            raise TargetError("it does not close its session")


@dataclass
class Starter:
    """Starts fake servers and keeps count. ``fails``: launches that cannot be started."""

    fails: set[Launch] = field(default_factory=set)
    started: list[FakeServer] = field(default_factory=list)
    running: set[int] = field(default_factory=set)
    most: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def __call__(self, launch: Launch, _stop: threading.Event) -> Iterator[Any]:
        if launch in self.fails:
            raise TargetError(f"none started {launch}")
        with self.lock:
            server = FakeServer(len(self.started), launch)
            self.started.append(server)
            self.running.add(server.number)
            self.most = max(self.most, len(self.running))
        yield server
        with self.lock:
            self.running.remove(server.number)


CASES = [
    case("X-001"),
    case("X-002", spoils=True),
    case("X-003", launch=OTHER),
    case("X-004", needs=frozenset({"no group"})),
    case("X-005", spoils=True),
    case("X-006"),
    case("X-007", launch=OTHER, spoils=True),
]


def numbers(pool: Pool, cases: list[Case]) -> dict[str, int]:
    """Case id to the number of its server, run in order."""
    found = {}
    for each in cases:
        found[each.id] = pool.target_for(each).number  # type: ignore[attr-defined]
        assert pool.after(each) is None
    return found


def test_cases_share_a_server_unless_they_spoil_it_or_need_another_launch() -> None:
    assert [(launch, [each.id for each in own]) for launch, own in segments(CASES)] == [
        (USUAL, ["X-004", "X-001", "X-006", "X-002"]),
        (USUAL, ["X-005"]),
        (OTHER, ["X-003", "X-007"]),
    ]


def test_a_run_has_at_most_two_servers_and_leaves_none() -> None:
    starter = Starter()
    pool = Pool(starter)
    ordered = pool.plan(CASES)
    assert numbers(pool, ordered) == {
        "X-004": 0,
        "X-001": 0,
        "X-006": 0,
        "X-002": 0,
        "X-005": 1,
        "X-003": 2,
        "X-007": 2,
    }
    pool.close()
    assert [server.launch for server in starter.started] == [USUAL, USUAL, OTHER]
    assert starter.most <= 2
    assert starter.running == set()
    assert pool.replaced == []


def test_the_next_server_starts_while_cases_run() -> None:
    starter = Starter()
    pool = Pool(starter)
    pool.plan([case("X-001"), case("X-003", launch=OTHER)])
    pool.target_for(CASES[0])
    for _ in range(200):
        if len(starter.started) == 2:
            break
        threading.Event().wait(0.005)
    assert [server.launch for server in starter.started] == [USUAL, OTHER]
    pool.close()
    assert starter.running == set()


def test_a_server_that_cannot_be_reset_is_replaced_and_its_spoiler_named() -> None:
    starter = Starter()
    pool = Pool(starter)
    cases = [case("X-001"), case("X-002"), case("X-003", launch=OTHER)]
    pool.plan(cases)
    first: Any = pool.target_for(cases[0])
    first.broken = True
    assert pool.after(cases[0]) == "it does not close its session"
    assert pool.replaced == ["X-001"]
    second: Any = pool.target_for(cases[1])
    assert second is not first
    assert second.launch == USUAL
    assert pool.after(cases[1]) is None
    assert pool.target_for(cases[2]).launch == OTHER
    pool.close()
    assert starter.most <= 2
    assert starter.running == set()


def test_a_server_that_does_not_start_is_tried_once() -> None:
    starter = Starter(fails={OTHER})
    pool = Pool(starter)
    cases = [case("X-001", launch=OTHER), case("X-002", launch=OTHER)]
    pool.plan(cases)
    for each in cases:
        with pytest.raises(TargetError, match="none started without VLLM_SERVER_DEV_MODE"):
            pool.target_for(each)
    pool.close()
    assert starter.started == []


def test_a_run_that_ends_early_leaves_none() -> None:
    starter = Starter()
    pool = Pool(starter)
    pool.plan(CASES)
    pool.target_for(CASES[3])
    pool.close()
    assert starter.running == set()
    untouched = Pool(starter)
    untouched.plan(CASES)
    untouched.close()
    assert starter.running == set()
