"""What counts as a difference, and how much it weighs."""

from __future__ import annotations

import pytest

from conformance.case import Case, Level
from conformance.case_run import Outcome
from conformance.compare import compare, inner_message, outcome_differences, report
from conformance.execution import StepAnswer
from conformance.steps import Call, Healthy, ReceivedEqualsSent
from conformance.truth import Recorded

pytestmark = pytest.mark.unit

INNER = "start_weight_update must be called before update_weights."
PREFIX = "Call to collective_rpc method failed: "
SUFFIX = ", please check the stack trace above for the root cause"
CALL = Call("POST", "/x", json={})
TEXT = "POST /x {}"


def error(message: str, code: int = 500, kind: str = "InternalServerError") -> Outcome:
    body = {"error": {"message": message, "type": kind, "param": None, "code": code}}
    return {"status": code, "content_type": "application/json", "body": body, "closed": True}


def levels(expected: Outcome, actual: Outcome) -> set[tuple[str, Level]]:
    return {(where, level) for where, level, _, _ in outcome_differences(expected, actual)}


def test_the_executors_wrapper_is_no_difference() -> None:
    wrapped = f"{PREFIX}Worker failed with error '{INNER}'{SUFFIX}"
    assert inner_message(wrapped) == inner_message(PREFIX + INNER) == PREFIX + INNER
    assert levels(error(wrapped), error(PREFIX + INNER)) == set()


@pytest.mark.parametrize("word", ["collective_rpc", "Worker", "failed", "root", "stack"])
def test_a_changed_word_of_the_wrapper_is_a_difference(word: str) -> None:
    wrapped = f"{PREFIX}Worker failed with error '{INNER}'{SUFFIX}"
    assert levels(error(wrapped), error(wrapped.replace(word, "other"))) == {("body.error.message", "wording")}
    assert levels(error(wrapped), error(INNER)) == {("body.error.message", "wording")}


def test_an_inner_text_may_hold_quotes_and_lines() -> None:
    text = "module 'torch' has no attribute 'float33'\nsecond line"
    assert inner_message(f"{PREFIX}Worker failed with error '{text}'{SUFFIX}") == PREFIX + text
    assert inner_message(f"{PREFIX}Worker failed with error ''{SUFFIX}") == PREFIX


def test_a_changed_message_is_wording() -> None:
    assert levels(error(INNER), error(INNER + " Please.")) == {("body.error.message", "wording")}
    assert levels(error(""), error(INNER)) == {("body.error.message", "wording")}


@pytest.mark.parametrize(
    ("actual", "where"),
    [
        (error(INNER, code=400), "status"),
        (error(INNER, code=400), "body.error.code"),
        (error(INNER, kind="BadRequestError"), "body.error.type"),
        ({**error(INNER), "closed": False}, "closed"),
        ({**error(INNER), "content_type": "text/plain"}, "content_type"),
        ({**error(INNER), "body": {"detail": INNER}}, "body.error"),
        ({**error(INNER), "body": {"error": INNER}}, "body.error"),
        ({**error(INNER), "body": INNER}, "body"),
        ({**error(INNER), "body": ""}, "body"),
        ({**error(INNER), "allow": "POST"}, "allow"),
    ],
)
def test_what_belongs_to_the_contract(actual: Outcome, where: str) -> None:
    assert (where, "contract") in levels(error(INNER), actual)


def test_types_are_compared_not_only_values() -> None:
    assert levels({"body": {"is_paused": True}}, {"body": {"is_paused": 1}}) == {("body.is_paused", "contract")}
    assert levels({"body": {"n": 1}}, {"body": {"n": 1.0}}) == {("body.n", "contract")}
    assert levels({"body": [1, 2]}, {"body": [1]}) == {("body", "contract")}
    assert levels({"body": ["a"]}, {"body": ["b"]}) == {("body[0]", "wording")}


def test_an_empty_body_is_not_a_text() -> None:
    assert levels({"body": ""}, {"body": "ok"}) == {("body", "contract")}


def case(*steps: Call | Healthy, level: Level = "contract") -> Case:
    return Case("X-001", "a sentence", steps, "routes", "source", level=level)


def test_a_differing_step_is_shown_with_its_request() -> None:
    truth = Recorded("a sentence", ((TEXT, {"status": 200}), (TEXT, {"status": 200})))
    answers = [StepAnswer(1, TEXT, {"status": 200}), StepAnswer(2, TEXT, {"status": 500})]
    found = compare(case(CALL, CALL), truth, answers)
    assert [(item.number, item.where, item.expected, item.actual) for item in found] == [(2, "status", 200, 500)]
    assert report(case(CALL, CALL), found).splitlines() == [
        "X-001  a sentence",
        f"  step 2: {TEXT}",
        "    status (contract)",
        "      expected: 200",
        "      actual:   500",
    ]


def test_a_case_without_truth_is_a_difference_by_name() -> None:
    found = compare(case(CALL), None, [StepAnswer(1, TEXT, {"status": 200})])
    assert [(item.level, item.actual) for item in found] == [("contract", "the case is not recorded")]


def test_a_changed_sentence_is_a_difference() -> None:
    truth = Recorded("another sentence", ((TEXT, {"status": 200}),))
    found = compare(case(CALL), truth, [StepAnswer(1, TEXT, {"status": 200})])
    assert [(item.where, item.expected) for item in found] == [("sentence", "another sentence")]


def test_the_kind_of_a_difference() -> None:
    text = "received equals sent"
    truth = Recorded("a sentence", ((text, {"received": "as expected"}),))
    answer = StepAnswer(1, text, {"received": ["worker 0 did not receive a"]})
    steps = (ReceivedEqualsSent(),)
    found = compare(Case("X-001", "a sentence", steps, "routes", "source"), truth, [answer])
    assert [(item.kind, item.level) for item in found] == [("bytes", "contract")]
    assert [item.kind for item in compare(case(Healthy()), None, [StepAnswer(1, "x", {"health": 503})])] == [
        "contract",
        "contract",
    ]


def test_a_case_that_changed_since_it_was_recorded_says_so() -> None:
    truth = Recorded("a sentence", (("POST /y {}", {"status": 200}),))
    found = compare(case(CALL), truth, [StepAnswer(1, TEXT, {"status": 200})])
    assert [(item.where, item.expected, item.actual) for item in found] == [
        ("step", "POST /y {}", "changed since recorded")
    ]
    longer = Recorded("a sentence", ((TEXT, {"status": 200}), (TEXT, {"status": 200})))
    assert [item.where for item in compare(case(CALL), longer, [StepAnswer(1, TEXT, {"status": 200})])] == ["steps"]


def test_an_invariant_holds_whatever_was_recorded() -> None:
    text = "GET /health on another connection"
    truth = Recorded("a sentence", ((text, {"health": 503}),))
    found = compare(case(Healthy()), truth, [StepAnswer(1, text, {"health": 503})])
    assert [(item.where, item.expected) for item in found] == [("invariant", {"health": 200})]


def test_a_case_that_ended_early_says_where_and_why() -> None:
    truth = Recorded("a sentence", ((TEXT, {"status": 200}), (TEXT, {"status": 200})))
    found = compare(case(CALL, CALL), truth, [StepAnswer(1, TEXT, {"failed": "no answer before the deadline"})])
    assert ("answer", "no answer before the deadline") in {(item.where, item.actual) for item in found}


def test_differences_of_a_platform_case_are_the_platforms() -> None:
    truth = Recorded("a sentence", ((TEXT, {"status": 200}),))
    found = compare(case(CALL, level="platform"), truth, [StepAnswer(1, TEXT, {"status": 500})])
    assert [item.level for item in found] == ["platform"]
