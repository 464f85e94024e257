"""Runs the steps of one case against a target and collects what it answered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from conformance.case import Case
from conformance.case_run import AS_EXPECTED, CaseRun, Outcome
from conformance.request_data import describe
from conformance.steps import (
    Begin,
    Broadcast,
    Dies,
    Healthy,
    Holds,
    LeaveGroup,
    Meet,
    ModelEquals,
    ReceivedEqualsSent,
    Step,
    StillPending,
)
from conformance.targets.base import Target, TargetError
from conformance.trainer_side import StepFailedError


@dataclass
class StepAnswer:
    """What one step brought: its number in the case (from 1), its text, its outcome as it stands in a truth file."""

    number: int
    step: str
    outcome: Outcome


@dataclass
class Execution:
    """The answers of one case. When it ended early, the last one says why, under ``failed``."""

    answers: list[StepAnswer] = field(default_factory=list)

    @property
    def failed(self) -> bool:
        """Whether the case ended early."""
        return bool(self.answers) and "failed" in self.answers[-1].outcome


def numbers_of_answers(case: Case) -> list[int]:
    """The numbers of the steps that bring an answer, when nothing fails."""
    silent = (Begin, Meet, Broadcast, LeaveGroup)
    return [number for number, step in enumerate(case.steps, 1) if not isinstance(step, silent)]


def invariant(step: Step) -> Outcome | None:
    """The outcome that a step must have on every server, whatever was recorded; None where the truth decides."""
    match step:
        case StillPending():
            return {"pending": True}
        case Healthy():
            return {"health": 200}
        case Dies():
            return {"process": "ended"}
        case ReceivedEqualsSent() | Holds() | ModelEquals():
            return dict(AS_EXPECTED)
        case _:
            return None


def execute(
    case: Case, target: Target, closes: Mapping[int, bool] | None = None, close_seconds: float = 0.0
) -> Execution:
    """Runs every step of a case on a target that was reset; ends at the first step that brings no answer at all.

    ``closes``: step number to whether the truth expects the server to end the connection after it.
    ``close_seconds``: how long to watch for any other end after each answer (0: the next request finds out).
    """
    execution = Execution()
    run = CaseRun(target, closes or {}, close_seconds)
    try:
        for number, step in enumerate(case.steps, 1):
            try:
                outcome = run.do(number, step)
            except (StepFailedError, TargetError) as error:
                execution.answers.append(StepAnswer(number, describe(step), {"failed": str(error)}))
                break
            if outcome is not None:
                execution.answers.append(StepAnswer(number, describe(step), outcome))
        else:
            run.note_last_closes()
    finally:
        run.close()
    return execution
