"""The truth files: what a real server of a release answered, case by case, and where that was seen."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from conformance.case import Case
from conformance.case_run import Outcome
from conformance.dialect import in_release
from conformance.execution import StepAnswer
from conformance.json_schema import violations
from conformance.normalise import SPANS
from conformance.request_data import describe

SCHEMA = "conformance/truth/2"
DIRECTORY = Path(__file__).parent / "truth"
SCHEMA_FILE = DIRECTORY / "schema.json"
_LISTED_VIOLATIONS = 3


class TruthError(ValueError):
    """A truth file is missing, unreadable, or not one."""


@dataclass(frozen=True)
class Recorded:
    """What stands in a truth file for one case: the outcomes, and the text of the step that each belongs to."""

    sentence: str
    steps: tuple[tuple[str, Outcome], ...]


@dataclass(frozen=True)
class Truth:
    """One release's truth. ``made_by`` is ``recorded``; ``provenance`` says where and when.

    ``not_testable`` holds the cases that a managed server of this suite cannot show, and why.
    """

    release: str
    made_by: str
    provenance: Mapping[str, object]
    cases: Mapping[str, Recorded]
    not_testable: Mapping[str, str] = field(default_factory=dict)


@cache
def schema() -> Mapping[str, Any]:
    """The JSON Schema of truth files."""
    read: dict[str, Any] = json.loads(SCHEMA_FILE.read_text(encoding="utf-8"))
    return read


def path_of(release: str, directory: Path = DIRECTORY) -> Path:
    """Where the truth of a release lies."""
    return directory / f"{release}.json"


def recorded_releases(directory: Path = DIRECTORY) -> list[str]:
    """The releases that have a truth file, by name."""
    return sorted(path.stem for path in directory.glob("*.json") if path.name != SCHEMA_FILE.name)


def load(release: str, directory: Path = DIRECTORY, to_record: bool = False) -> Truth:
    """Reads a release's truth. Raises TruthError, which says what is wrong and what to do.

    ``to_record``: the file will be written anew, with this suite's spans.
    """
    path = path_of(release, directory)
    if not path.exists():
        have = ", ".join(recorded_releases(directory)) or "none"
        raise TruthError(f"no truth for vLLM {release} (recorded: {have}): give --vllm-version, or --record one")
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise TruthError(f"{path.name} is not a truth file: {error}") from error
    found = violations(document, schema())
    if not found and document["release"] != release:
        found = [f"release is {document['release']!r}, not {release!r}"]
    if not found and document["spans"] != SPANS and not to_record:
        found = ["spans are not those of this suite: record it anew"]
    if found:
        more = f" (and {len(found) - _LISTED_VIOLATIONS} more)" if len(found) > _LISTED_VIOLATIONS else ""
        raise TruthError(f"{path.name} is not a truth file: {'; '.join(found[:_LISTED_VIOLATIONS])}{more}")
    cases = {case_id: recorded_of(entry) for case_id, entry in document["cases"].items()}
    return Truth(release, document["made_by"], document["provenance"], cases, document["not_testable"])


def recorded_of(entry: Mapping[str, Any]) -> Recorded:
    """One case's entry of a truth file that fits the schema."""
    steps = tuple((step["step"], {key: step[key] for key in step if key != "step"}) for step in entry["steps"])
    return Recorded(entry["sentence"], steps)


def entry_of(recorded: Recorded) -> dict[str, Any]:
    """The inverse of `recorded_of`."""
    return {"sentence": recorded.sentence, "steps": [{"step": step, **outcome} for step, outcome in recorded.steps]}


def save(truth: Truth, directory: Path = DIRECTORY) -> Path:
    """Writes a truth file, cases in the order of their ids, and returns its path."""
    document = {
        "schema": SCHEMA,
        "release": truth.release,
        "made_by": truth.made_by,
        "provenance": dict(truth.provenance),
        "spans": SPANS,
        "not_testable": dict(sorted(truth.not_testable.items())),
        "cases": {case_id: entry_of(recorded) for case_id, recorded in sorted(truth.cases.items())},
    }
    path = path_of(truth.release, directory)
    path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return path


def recorded(case: Case, answers: Sequence[StepAnswer]) -> Recorded:
    """One case's answers as they stand in a truth file."""
    return Recorded(case.sentence, tuple((answer.step, answer.outcome) for answer in answers))


def problems(truth: Truth, cases: Sequence[Case]) -> list[str]:
    """What keeps a truth from fitting the suite, one line each: unknown cases, missing ones, changed requests."""
    known = {case.id: in_release(case, truth.release) for case in cases if truth.release in case.applies_to}
    found = [
        f"{case_id} is in the truth of {truth.release} but in no case list"
        for case_id in truth.cases
        if case_id not in known
    ]
    for case_id, case in known.items():
        if case_id in truth.not_testable:
            continue
        if case_id not in truth.cases:
            found.append(f"{case_id} is not recorded for {truth.release}")
            continue
        if truth.cases[case_id].sentence != case.sentence:
            found.append(f"{case_id} has another sentence than when it was recorded for {truth.release}")
        texts = {describe(step) for step in case.steps}
        for text, _ in truth.cases[case_id].steps:
            if text not in texts:
                found.append(
                    f"{case_id} has changed since it was recorded for {truth.release}: {text!r} is no step of it"
                )
    return found
