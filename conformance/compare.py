"""What a server answered, beside what the truth says: differences, and how much each one weighs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from conformance.case import Case, Level
from conformance.case_run import Outcome
from conformance.execution import StepAnswer, invariant
from conformance.normalise import normalise
from conformance.truth import Recorded

Kind = Literal["contract", "wording", "platform", "bytes"]

_WORKER_WRAPPER = re.compile(
    r"\A(Call to \w+ method failed: )Worker failed with error '(.*)', "
    r"please check the stack trace above for the root cause\Z",
    re.DOTALL,
)
_EXACT_KEYS = frozenset({"type", "object", "status", "version"})
"""Texts that a client may branch on: they belong to the contract, every other text is wording."""


@dataclass(frozen=True)
class Difference:
    """One difference of one case. ``number`` is 0 for the case as a whole; ``where`` names the part of the answer."""

    number: int
    step: str
    level: Level
    where: str
    expected: object
    actual: object

    @property
    def kind(self) -> Kind:
        """What differs: ``bytes`` where tensors did not arrive as they were sent, else the level."""
        return "bytes" if self.where == "invariant" and "received" in _keys(self.actual) else self.level


def _keys(value: object) -> frozenset[object]:
    return frozenset(value) if isinstance(value, dict) else frozenset()


def inner_message(text: str) -> str:
    """An engine error as one process words it: several put another wrapper around the worker's text."""
    match = _WORKER_WRAPPER.match(text)
    return text if match is None else match.group(1) + match.group(2)


def _json_differences(
    expected: object, actual: object, where: str, key: str
) -> list[tuple[str, Level, object, object]]:
    if isinstance(expected, dict) and isinstance(actual, dict):
        found: list[tuple[str, Level, object, object]] = []
        for name in [*expected, *(name for name in actual if name not in expected)]:
            inside = f"{where}.{name}"
            if name not in actual or name not in expected:
                found.append((inside, "contract", expected.get(name, "absent"), actual.get(name, "absent")))
            else:
                found += _json_differences(expected[name], actual[name], inside, name)
        return found
    if isinstance(expected, list) and isinstance(actual, list) and len(expected) == len(actual):
        return [
            found
            for index, pair in enumerate(zip(expected, actual, strict=True))
            for found in _json_differences(*pair, f"{where}[{index}]", key)
        ]
    if isinstance(expected, str) and isinstance(actual, str):
        if inner_message(expected) == inner_message(actual):
            return []
        level: Level = "contract" if key in _EXACT_KEYS or not expected or not actual else "wording"
        # An empty message where there should be a text is wording still, but an empty *body* is another form.
        if level == "contract" and key == "message":
            level = "wording"
        return [(where, level, expected, actual)]
    if type(expected) is type(actual) and expected == actual:
        return []
    return [(where, "contract", expected, actual)]


def outcome_differences(expected: Outcome, actual: Outcome) -> list[tuple[str, Level, object, object]]:
    """The differing parts of two outcomes: where, level, expected, actual. Both sides are normalised first."""
    found: list[tuple[str, Level, object, object]] = []
    for name in [*expected, *(name for name in actual if name not in expected)]:
        if name not in expected or name not in actual:
            found.append((name, "contract", expected.get(name, "absent"), actual.get(name, "absent")))
        elif name == "body":
            found += _json_differences(normalise(expected[name]), normalise(actual[name]), name, "")
        elif type(expected[name]) is not type(actual[name]) or expected[name] != actual[name]:
            found.append((name, "contract", expected[name], actual[name]))
    return found


def compare(case: Case, truth: Recorded | None, answers: Sequence[StepAnswer]) -> list[Difference]:
    """Every difference of a case. Without a truth only the invariants are checked, and that is a difference too."""
    found = broken_invariants(case, answers)
    if truth is None:
        return [*found, Difference(0, "", "contract", "truth", "a recorded answer", "the case is not recorded")]
    if truth.sentence != case.sentence:
        found.append(Difference(0, "", "contract", "sentence", truth.sentence, "changed since recorded"))
    seen = {difference.number for difference in found}
    for index, (step, expected) in enumerate(truth.steps):
        if index >= len(answers):
            break
        answer = answers[index]
        if answer.step != step:
            found.append(Difference(answer.number, answer.step, "contract", "step", step, "changed since recorded"))
            break
        if answer.number in seen:
            continue
        for where, level, wanted, got in outcome_differences(expected, answer.outcome):
            weight = "platform" if case.level == "platform" else level
            found.append(Difference(answer.number, step, weight, where, wanted, got))
    ended_early = bool(answers) and "failed" in answers[-1].outcome
    if len(answers) != len(truth.steps) and not ended_early:
        count = f"{len(truth.steps)} answers"
        found.append(Difference(0, "", "contract", "steps", count, f"{len(answers)}: changed since recorded"))
    return found


def broken_invariants(case: Case, answers: Sequence[StepAnswer]) -> list[Difference]:
    """The invariants that a run broke, and the step at which it ended early."""
    found = []
    for answer in answers:
        expected = invariant(case.steps[answer.number - 1])
        if "failed" in answer.outcome:
            wanted = expected or "an answer"
            found.append(Difference(answer.number, answer.step, "contract", "answer", wanted, answer.outcome["failed"]))
        elif expected is not None and answer.outcome != expected:
            found.append(Difference(answer.number, answer.step, "contract", "invariant", expected, answer.outcome))
    return found


def report(case: Case, differences: Sequence[Difference]) -> str:
    """The text of a failure: id, sentence, and for each difference the step, the request, expected and actual."""
    lines = [f"{case.id}  {case.sentence}"]
    for difference in differences:
        if difference.number:
            lines.append(f"  step {difference.number}: {difference.step}")
        lines.append(f"    {difference.where} ({difference.level})")
        lines.append(f"      expected: {difference.expected!r}")
        lines.append(f"      actual:   {difference.actual!r}")
    return "\n".join(lines)
