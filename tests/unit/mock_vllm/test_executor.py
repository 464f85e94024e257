"""Replies are read rank by rank, and what is not read comes one call late."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import pytest

from mock_vllm.engine.executor import InProcessExecutor, MultiprocExecutor
from mock_vllm.engine.worker import Worker
from mock_vllm.errors import WorkerError

pytestmark = pytest.mark.unit


class FakeWorker:
    """Fails when told to, and counts."""

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.calls: list[str] = []
        self.fail_on: dict[str, str] = {}

    def work(self, name: str) -> None:
        self.calls.append(name)
        if name in self.fail_on:
            raise WorkerError(self.fail_on[name])

    def broken(self) -> None:
        raise KeyError("a bug of the mock")

    def abandon(self) -> None:
        self.calls.append("abandon")

    def shutdown(self) -> None:
        self.calls.append("shutdown")


@pytest.fixture
def ranks() -> list[FakeWorker]:
    return [FakeWorker(0), FakeWorker(1)]


@pytest.fixture
def executor(ranks: list[FakeWorker]) -> Iterator[MultiprocExecutor]:
    executor = MultiprocExecutor(cast("list[Worker]", ranks))
    yield executor
    executor.shutdown()


def refusal(executor: MultiprocExecutor | InProcessExecutor, method: str, *args: Any) -> str:
    with pytest.raises(WorkerError) as caught:
        executor.collective_rpc(method, args)
    return str(caught.value)


def test_every_rank_is_called(executor: MultiprocExecutor, ranks: list[FakeWorker]) -> None:
    executor.collective_rpc("work", ("a",))
    assert [rank.calls for rank in ranks] == [["a"], ["a"]]


def test_several_processes_word_an_error_their_way(executor: MultiprocExecutor, ranks: list[FakeWorker]) -> None:
    ranks[0].fail_on = {"a": "no"}
    assert refusal(executor, "work", "a") == (
        "Worker failed with error 'no', please check the stack trace above for the root cause"
    )


def test_one_process_does_not(ranks: list[FakeWorker]) -> None:
    ranks[0].fail_on = {"a": "no"}
    assert refusal(InProcessExecutor(cast("Worker", ranks[0])), "work", "a") == "no"


def test_a_failure_leaves_later_ranks_one_call_late(executor: MultiprocExecutor, ranks: list[FakeWorker]) -> None:
    ranks[0].fail_on = {"update": "first"}
    ranks[1].fail_on = {"update": "second", "late": "hidden"}
    assert "'first'" in refusal(executor, "work", "update")
    assert "'second'" in refusal(executor, "work", "start"), "rank 1's old error is raised by a call that went well"
    executor.collective_rpc("work", ("finish",))
    executor.collective_rpc("work", ("late",))
    assert "'hidden'" in refusal(executor, "work", "next")


def test_a_bug_of_the_mock_is_logged(executor: MultiprocExecutor, caplog: pytest.LogCaptureFixture) -> None:
    assert "a bug of the mock" in refusal(executor, "broken")
    assert "the mock itself failed in broken" in caplog.text
