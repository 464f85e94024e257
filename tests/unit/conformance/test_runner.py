"""How the runner weighs differences, orders cases, and finds out what a target offers."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import Literal

import pytest

from conformance.case import USUAL, Case, Launch, Level, Need
from conformance.cases import all_cases
from conformance.compare import Difference, compare
from conformance.execution import StepAnswer
from conformance.http_driver import Address
from conformance.runner import CaseResult, decides, not_testable, record_case, run_case
from conformance.servers import without_group_first
from conformance.steps import Call
from conformance.targets.base import ReceivedTensor, TargetError
from conformance.targets.url import _tensors_of
from conformance.truth import Recorded

pytestmark = pytest.mark.unit


@dataclass
class FakeTarget:
    """A target that offers what it is told to, at an address where nobody listens."""

    kind: Literal["mock", "real"] = "mock"
    lacks: dict[str, str] = field(default_factory=dict)
    trouble: str | None = None
    base_url: str = "http://127.0.0.1:9"
    address: Address = field(default_factory=lambda: Address("127.0.0.1", 9, ""))
    deadline_seconds: float = 1.0
    patience: float = 0.1
    trainer_address: str = "127.0.0.1"
    release: str = "0.21.0"
    world_size: int = 1
    model_id: str = "tiny"
    launch: Launch = USUAL
    expendable: bool = False
    resets: int = 0

    def offers(self, need: Need) -> str | None:
        return self.lacks.get(need)

    def reset(self) -> None:
        self.resets += 1
        if self.trouble:
            raise TargetError(self.trouble)

    def received(self) -> list[dict[str, ReceivedTensor]]:
        return []

    def group_is_made(self) -> None:
        raise AssertionError("no case here makes a group")


CASE = Case("X-001", "a sentence", (Call("GET", "/x"),), "routes", "source", needs=frozenset({"digests", "no group"}))
TRUTH = Recorded("a sentence", (("GET /x", {"status": 200}),))


@pytest.mark.parametrize(
    ("kind", "level", "fails"),
    [
        ("mock", "contract", True),
        ("mock", "wording", True),
        ("mock", "platform", True),
        ("real", "contract", True),
        ("real", "wording", False),
        ("real", "platform", False),
    ],
)
def test_a_mock_must_match_everything_and_a_real_server_the_contract(
    kind: Literal["mock", "real"], level: Level, fails: bool
) -> None:
    assert decides(Difference(1, "GET /x", level, "status", 200, 500), FakeTarget(kind)) is fails


def test_cases_without_a_group_come_first_and_the_rest_keeps_its_order() -> None:
    ordered = without_group_first(all_cases())
    first = [case.id for case in all_cases() if "no group" in case.needs]
    assert [case.id for case in ordered[: len(first)]] == first != []
    rest = [case for case in all_cases() if "no group" not in case.needs]
    assert ordered[len(first) :] == rest


def test_what_a_target_lacks_is_the_reason_and_never_a_pass() -> None:
    target = FakeTarget(lacks={"digests": "it shows none", "no group": "it has one"})
    assert not_testable(CASE, target) == "it has one"  # asked first: other probes may make a group
    for result in (run_case(CASE, target, TRUTH), record_case(CASE, target)):
        assert (result.verdict, result.reason) == ("not testable", "it has one")
    assert target.resets == 0


def test_a_server_started_otherwise_and_a_spoiled_one_are_not_at_hand() -> None:
    launched = replace(CASE, launch=Launch(dev_mode=False))
    assert not_testable(launched, FakeTarget()) == "needs a server that was started without VLLM_SERVER_DEV_MODE"
    assert not_testable(launched, FakeTarget(launch=launched.launch)) is None
    spoiling = replace(CASE, spoils=True)
    assert not_testable(spoiling, FakeTarget()) == "spoils its server: needs one that this suite starts"
    assert not_testable(spoiling, FakeTarget(expendable=True)) is None


@pytest.mark.parametrize(
    ("kind", "found", "word", "verdict"),
    [
        ("mock", {"status": 200}, "agrees", "agree"),
        ("mock", {"status": 500}, "mock differs", "differ"),
        ("real", {"status": 500}, "real drifted", "differ"),
        ("mock", {"status": 200, "body": "other"}, "wording differs", "differ"),
        ("real", {"status": 200, "body": "other"}, "wording differs", "agree"),
    ],
)
def test_what_was_found_in_one_word(
    kind: Literal["mock", "real"], found: dict[str, object], word: str, verdict: str
) -> None:
    case = replace(CASE, needs=frozenset())
    truth = Recorded("a sentence", (("GET /x", {"status": 200, "body": "text"}),))
    answers = [StepAnswer(1, "GET /x", {"body": "text", **found})]
    differences = tuple(compare(case, truth, answers))
    decided = any(decides(difference, FakeTarget(kind)) for difference in differences)
    result = CaseResult(case, "differ" if decided else "agree", "", differences, target=kind)
    assert (result.kind, result.verdict) == (word, verdict)
    if differences:
        assert "expected: " in result.text
        assert "actual: " in result.text


def test_a_target_that_cannot_be_reset_differs() -> None:
    result = run_case(CASE, FakeTarget(trouble="it is still paused"), TRUTH)
    assert result.verdict == "differ"
    assert "actual:   'it is still paused'" in result.text


def test_a_target_that_is_gone_differs_and_is_not_recorded() -> None:
    target = FakeTarget()
    judged = run_case(CASE, target, TRUTH)
    assert judged.verdict == "differ"
    assert "step 1: GET /x" in judged.text
    assert "cannot send to the server" in judged.text
    assert record_case(CASE, target).verdict == "differ"


def test_what_a_worker_says_may_come_as_json_or_as_its_text() -> None:
    entries = [
        {"name": "a", "dtype": "float32", "shape": [2], "nbytes": 8, "sha256": "00"},
        {"name": "a", "dtype": "float32", "shape": [2], "nbytes": 8, "sha256": "11"},
    ]
    last = {"a": ReceivedTensor("float32", (2,), 8, "11")}
    assert _tensors_of(entries) == _tensors_of(json.dumps(entries)) == last
