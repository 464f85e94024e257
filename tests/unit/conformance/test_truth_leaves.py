"""Every leaf of every truth file is watched: change it, and exactly its case turns red.

The answers are those that the file itself recorded, so no server is needed; that a mock gives them is tested elsewhere.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from conformance.case import Case
from conformance.compare import compare
from conformance.dialect import cases_for
from conformance.execution import StepAnswer, numbers_of_answers
from conformance.normalise import SPANS
from conformance.truth import Recorded, TruthError, entry_of, load, path_of, recorded_of, recorded_releases

pytestmark = pytest.mark.unit

Path = tuple[str | int, ...]
_SPAN = re.compile("|".join(re.escape(span) for span in SPANS))
_WORD = re.compile(r"\w+")


def leaves(value: Any, at: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every value that holds no other, with the way to it. An empty list or object is one as well."""
    if isinstance(value, dict | list) and value:
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(item, (*at, key))
    else:
        yield at, value


def changes(leaf: Any) -> Iterator[Any]:
    """The leaf with one thing changed: each word of a text in turn (spans apart), else another value of its type."""
    if isinstance(leaf, str):
        spans = [match.span() for match in _SPAN.finditer(leaf)]
        words = [match for match in _WORD.finditer(leaf) if not any(a <= match.start() < b for a, b in spans)]
        for word in words:
            yield f"{leaf[: word.start()]}{word.group()}x{leaf[word.end() :]}"
        if not leaf:
            yield "x"
    elif isinstance(leaf, bool):
        yield not leaf
    elif isinstance(leaf, int | float):
        yield leaf + 1
    else:
        yield "x"  # null, an empty list, an empty object


def changed(entry: Any, at: Path, value: Any) -> Any:
    """A copy with another value in one place."""
    twin = copy.deepcopy(entry)
    holder = twin
    for key in at[:-1]:
        holder = holder[key]
    holder[at[-1]] = value
    return twin


def answers_of(case: Case, recorded: Recorded) -> list[StepAnswer]:
    numbers = numbers_of_answers(case)
    assert len(numbers) == len(recorded.steps), case.id
    return [StepAnswer(number, step, outcome) for number, (step, outcome) in zip(numbers, recorded.steps, strict=True)]


@pytest.mark.parametrize("release", recorded_releases())
def test_every_leaf_of_a_case_turns_that_case_red(release: str) -> None:
    truth = load(release)
    cases = {case.id: case for case in cases_for(release)}
    count, unseen = 0, []
    for case_id, recorded in truth.cases.items():
        case, entry, answers = cases[case_id], entry_of(recorded), answers_of(cases[case_id], recorded)
        assert compare(case, recorded, answers) == [], case_id
        for at, leaf in leaves(entry):
            for value in changes(leaf):
                count += 1
                if not compare(case, recorded_of(changed(entry, at, value)), answers):
                    unseen.append((case_id, at, leaf, value))
    assert unseen == []
    assert count > 10 * len(truth.cases)


@pytest.mark.parametrize("release", recorded_releases())
def test_a_changed_leaf_turns_no_other_case_red(release: str) -> None:
    truth = load(release)
    cases = {case.id: case for case in cases_for(release)}
    answers = {case_id: answers_of(cases[case_id], recorded) for case_id, recorded in truth.cases.items()}
    for number, (case_id, recorded) in enumerate(truth.cases.items()):
        entry = entry_of(recorded)
        found = [(at, value) for at, leaf in leaves(entry) for value in changes(leaf)]
        at, value = found[number % len(found)]
        file = {**truth.cases, case_id: recorded_of(changed(entry, at, value))}
        red = [other for other in file if compare(cases[other], file[other], answers[other])]
        assert red == [case_id], at


@pytest.mark.parametrize("release", recorded_releases())
def test_what_belongs_to_no_case_is_checked_on_loading(release: str, tmp_path: Any) -> None:
    document = json.loads(path_of(release).read_text())
    for key in ("schema", "release", "made_by", "spans"):
        for at, leaf in leaves(document[key], (key,)):
            for value in changes(leaf):
                path_of(release, tmp_path).write_text(json.dumps(changed({**document, "cases": {}}, at, value)))
                with pytest.raises(TruthError, match=str(at[0])):
                    load(release, tmp_path)
