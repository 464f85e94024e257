"""The engine takes one call at a time, and a reset ends whatever it waits for."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any, cast

import pytest

from mock_vllm.engine.core import EngineCore
from mock_vllm.engine.worker import Worker
from mock_vllm.errors import EngineCallError, WorkerError

pytestmark = pytest.mark.unit


class FakeExecutor:
    """Blocks in `wait` until it is abandoned or released."""

    def __init__(self) -> None:
        self.workers: list[Worker] = []
        self.entered = threading.Event()
        self.release = threading.Event()
        self.abandoned = False
        self.closed = False

    def collective_rpc(self, method: str, args: tuple[Any, ...]) -> None:
        if method == "fail":
            raise WorkerError(args[0])
        if method == "wait":
            self.entered.set()
            if not self.release.wait(5):
                raise AssertionError("nobody released the call")
            if self.abandoned:
                raise WorkerError("abandoned")

    def abandon(self) -> None:
        self.abandoned = True
        self.release.set()

    def shutdown(self) -> None:
        self.closed = True


@pytest.fixture
def made() -> list[FakeExecutor]:
    return []


@pytest.fixture
def core(made: list[FakeExecutor]) -> Iterator[EngineCore]:
    def build() -> FakeExecutor:
        made.append(FakeExecutor())
        return made[-1]

    core = EngineCore(cast("Callable[[], Any]", build))
    yield core
    core.shutdown()


def test_an_error_names_the_utility_call(core: EngineCore) -> None:
    with pytest.raises(EngineCallError) as caught:
        core.collective_rpc("fail", "why").result(5)
    assert str(caught.value) == "Call to collective_rpc method failed: why"


def test_other_calls_wait_behind_a_blocked_one(core: EngineCore, made: list[FakeExecutor]) -> None:
    blocked = core.collective_rpc("wait")
    assert made[0].entered.wait(5)
    paused = core.pause()
    asked = core.is_paused()
    assert core.busy == "wait"
    assert core.queued == 2
    assert not paused.done()
    made[0].release.set()
    assert asked.result(5) is True
    assert blocked.done()
    assert core.busy is None


def test_pause_and_resume(core: EngineCore) -> None:
    core.pause().result(5)
    assert core.is_paused().result(5) is True
    core.resume().result(5)
    assert core.is_paused().result(5) is False


def test_a_reset_ends_what_is_under_way_and_what_waits(core: EngineCore, made: list[FakeExecutor]) -> None:
    core.pause().result(5)
    blocked = core.collective_rpc("wait")
    assert made[0].entered.wait(5)
    waiting = core.collective_rpc("wait")
    core.reset().result(5)
    with pytest.raises(EngineCallError, match="abandoned"):
        blocked.result(5)
    with pytest.raises(EngineCallError, match="the mock is being reset"):
        waiting.result(5)
    assert made[0].closed
    assert core.executor is cast("Any", made[1])
    assert core.is_paused().result(5) is False
    core.collective_rpc("anything").result(5)


def test_sleeping_is_also_being_paused(core: EngineCore) -> None:
    core.pause().result(5)
    assert core.is_sleeping().result(5) is True
    core.resume().result(5)
    assert core.is_sleeping().result(5) is False


def test_a_partial_wake_up_resumes(core: EngineCore) -> None:
    core.sleep(1, "abort").result(5)
    assert core.is_paused().result(5) is True
    core.wake_up(["weights"]).result(5)
    assert core.is_paused().result(5) is False
    assert core.is_sleeping().result(5) is True
    core.wake_up(None).result(5)
    assert core.is_sleeping().result(5) is False


def test_a_mode_that_is_none(core: EngineCore) -> None:
    with pytest.raises(EngineCallError, match="Call to sleep method failed: Invalid pause mode: nap"):
        core.sleep(1, "nap").result(5)
