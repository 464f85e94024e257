"""The truth files: what a real server of a release answered, case by case, and where that was seen."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from conformance.case import Case
from conformance.case_run import Outcome
from conformance.execution import StepAnswer
from conformance.normalise import SPANS
from conformance.request_data import describe

SCHEMA = "conformance/truth/1"
DIRECTORY = Path(__file__).parent / "truth"


class TruthError(ValueError):
    """A truth file is missing, unreadable, or not one."""


@dataclass(frozen=True)
class Recorded:
    """What stands in a truth file for one case: the outcomes, and the text of the step that each belongs to."""

    sentence: str
    steps: tuple[tuple[str, Outcome], ...]


@dataclass(frozen=True)
class Truth:
    """One release's truth. ``made_by`` is ``recorded``; ``provenance`` says where and when."""

    release: str
    made_by: str
    provenance: Mapping[str, object]
    cases: Mapping[str, Recorded]


def path_of(release: str, directory: Path = DIRECTORY) -> Path:
    """Where the truth of a release lies."""
    return directory / f"{release}.json"


def recorded_releases(directory: Path = DIRECTORY) -> list[str]:
    """The releases that have a truth file, by name."""
    return sorted(path.stem for path in directory.glob("*.json"))


def load(release: str, directory: Path = DIRECTORY) -> Truth:
    """Reads a release's truth. Raises TruthError, which says what is wrong and what to do."""
    path = path_of(release, directory)
    if not path.exists():
        have = ", ".join(recorded_releases(directory)) or "none"
        raise TruthError(f"no truth for vLLM {release} (recorded: {have}): give --vllm-version, or --record one")
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        if document["schema"] != SCHEMA or document["release"] != release:
            raise TruthError(f"{path.name} is {document['schema']!r} for release {document['release']!r}")
        cases = {
            case_id: Recorded(
                entry["sentence"],
                tuple((step["step"], {key: step[key] for key in step if key != "step"}) for step in entry["steps"]),
            )
            for case_id, entry in document["cases"].items()
        }
        return Truth(release, document["made_by"], document["provenance"], cases)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        if isinstance(error, TruthError):
            raise
        raise TruthError(f"{path.name} is not a truth file: {type(error).__name__}: {error}") from error


def save(truth: Truth, directory: Path = DIRECTORY) -> Path:
    """Writes a truth file, cases in the order of their ids, and returns its path."""
    document = {
        "schema": SCHEMA,
        "release": truth.release,
        "made_by": truth.made_by,
        "provenance": dict(truth.provenance),
        "spans": SPANS,
        "cases": {
            case_id: {
                "sentence": recorded.sentence,
                "steps": [{"step": step, **outcome} for step, outcome in recorded.steps],
            }
            for case_id, recorded in sorted(truth.cases.items())
        },
    }
    path = path_of(truth.release, directory)
    path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return path


def recorded(case: Case, answers: Sequence[StepAnswer]) -> Recorded:
    """One case's answers as they stand in a truth file."""
    return Recorded(case.sentence, tuple((answer.step, answer.outcome) for answer in answers))


def problems(truth: Truth, cases: Sequence[Case]) -> list[str]:
    """What keeps a truth from fitting the suite, one line each: unknown cases, missing ones, changed requests."""
    known = {case.id: case for case in cases if truth.release in case.applies_to}
    found = [
        f"{case_id} is in the truth of {truth.release} but in no case list"
        for case_id in truth.cases
        if case_id not in known
    ]
    for case_id, case in known.items():
        if case_id not in truth.cases:
            found.append(f"{case_id} is not recorded for {truth.release}")
            continue
        texts = {describe(step) for step in case.steps}
        for text, _ in truth.cases[case_id].steps:
            if text not in texts:
                found.append(
                    f"{case_id} has changed since it was recorded for {truth.release}: {text!r} is no step of it"
                )
    return found
