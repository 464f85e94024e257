"""Truth files: what is read back is what was written, and whatever does not fit is named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from conformance.case import Case
from conformance.compare import compare
from conformance.execution import StepAnswer
from conformance.steps import Call
from conformance.truth import SCHEMA, Recorded, Truth, TruthError, load, path_of, problems, recorded, save

pytestmark = pytest.mark.unit

CASE = Case("X-001", "a sentence", (Call("POST", "/x", json={}),), "routes", "source")
ANSWER = StepAnswer(
    1,
    "POST /x {}",
    {
        "status": 400,
        "content_type": "application/json",
        "body": {"error": {"message": "Invalid JSON format"}},
        "closed": False,
    },
)


def truth_of(cases: dict[str, Recorded]) -> Truth:
    return Truth("0.21.0", "recorded", {"date": "2026-01-01", "suite": "1", "data_plane": "none"}, cases)


def test_what_was_saved_is_loaded(tmp_path: Path) -> None:
    truth = truth_of({"X-001": recorded(CASE, [ANSWER])})
    assert save(truth, tmp_path) == path_of("0.21.0", tmp_path)
    assert load("0.21.0", tmp_path) == truth
    assert problems(truth, [CASE]) == []
    assert compare(CASE, load("0.21.0", tmp_path).cases["X-001"], [ANSWER]) == []


def test_a_file_is_readable_line_by_line_and_ordered(tmp_path: Path) -> None:
    entry = recorded(CASE, [ANSWER])
    save(truth_of({"X-002": entry, "X-001": entry}), tmp_path)
    text = path_of("0.21.0", tmp_path).read_text()
    assert text.index('"X-001"') < text.index('"X-002"')
    assert '\n     "status": 400,\n' in text
    assert json.loads(text)["schema"] == SCHEMA


def test_an_unknown_and_a_missing_case_are_named() -> None:
    entry = recorded(CASE, [ANSWER])
    assert problems(truth_of({"X-009": entry}), [CASE]) == [
        "X-009 is in the truth of 0.21.0 but in no case list",
        "X-001 is not recorded for 0.21.0",
    ]


def test_a_changed_request_is_named() -> None:
    entry = Recorded("a sentence", (('POST /x {"a": 1}', {"status": 400}),))
    assert problems(truth_of({"X-001": entry}), [CASE]) == [
        "X-001 has changed since it was recorded for 0.21.0: 'POST /x {\"a\": 1}' is no step of it"
    ]


def test_a_changed_word_of_an_answer_is_named(tmp_path: Path) -> None:
    save(truth_of({"X-001": recorded(CASE, [ANSWER])}), tmp_path)
    path = path_of("0.21.0", tmp_path)
    path.write_text(path.read_text().replace("Invalid JSON format", "Invalid JSON"))
    found = compare(CASE, load("0.21.0", tmp_path).cases["X-001"], [ANSWER])
    assert [(item.where, item.level, item.expected, item.actual) for item in found] == [
        ("body.error.message", "wording", "Invalid JSON", "Invalid JSON format")
    ]


def test_a_missing_release_says_what_there_is(tmp_path: Path) -> None:
    save(truth_of({}), tmp_path)
    with pytest.raises(TruthError, match=r"no truth for vLLM 0\.99\.0 \(recorded: 0\.21\.0\)"):
        load("0.99.0", tmp_path)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"schema": "other", "release": "0.21.0"}', '{"cases": 1}'])
def test_a_file_that_is_no_truth_is_one_line(tmp_path: Path, text: str) -> None:
    path_of("0.21.0", tmp_path).write_text(text)
    with pytest.raises(TruthError, match=r"0\.21\.0\.json is ") as caught:
        load("0.21.0", tmp_path)
    assert "\n" not in str(caught.value)
