"""Runs cases and judges them; needs no pytest.

from conformance import run
results = run("http://127.0.0.1:8000")
red = {case_id for case_id, result in results.items() if result.verdict == "differ"}
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from conformance.case import Case
from conformance.compare import Difference, broken_invariants, compare, report
from conformance.dialect import cases_for
from conformance.execution import Execution, execute, numbers_of_answers
from conformance.http_driver import Address
from conformance.servers import without_group_first
from conformance.targets.base import Target, TargetError, TargetKind
from conformance.targets.mock import MockTarget, is_mock
from conformance.targets.url import RealTarget
from conformance.truth import Recorded, Truth, load

Verdict = Literal["agree", "differ", "not testable"]
Kind = Literal["agrees", "mock differs", "real drifted", "wording differs", "platform differs", "not testable"]
KINDS: tuple[Kind, ...] = get_args(Kind)

RECORDING_CLOSE_SECONDS = 0.15
"""While recording nothing is expected, so every answer is watched this long for the end of its connection."""


@dataclass(frozen=True)
class CaseResult:
    """``reason`` says why a case is not testable; ``differences`` are all of them, whatever their level.

    ``verdict`` is what decides: a wording that differs is a failure of a mock and a warning about a real server.
    """

    case: Case
    verdict: Verdict
    reason: str = ""
    differences: tuple[Difference, ...] = ()
    execution: Execution | None = None
    target: TargetKind = "mock"

    @property
    def kind(self) -> Kind:
        """What was found, in one of the words of ``KINDS``."""
        kinds = {difference.kind for difference in self.differences}
        if self.verdict == "not testable":
            return "not testable"
        if not kinds:
            return "agrees"
        if kinds <= {"wording", "platform"}:
            return "wording differs" if "wording" in kinds else "platform differs"
        return "mock differs" if self.target == "mock" else "real drifted"

    @property
    def text(self) -> str:
        """The differences as text for a reader."""
        return report(self.case, self.differences)


def decides(difference: Difference, target: Target) -> bool:
    """Whether a difference fails its case: a mock must match all, a real server only the contract."""
    return target.kind == "mock" or difference.level == "contract"


def not_testable(case: Case, target: Target) -> str | None:
    """Why a case cannot be tried on a target; None when it can. Raises TargetError."""
    if case.launch != target.launch:
        return f"needs a server that was started {case.launch}"
    if case.spoils and not target.expendable:
        return "spoils its server: needs one that this suite starts"
    reasons = (target.offers(need) for need in sorted(case.needs, key=lambda need: need != "no group"))
    return next((reason for reason in reasons if reason is not None), None)


def _closes(case: Case, truth: Recorded | None) -> dict[int, bool]:
    if truth is None:
        return {}
    numbers = numbers_of_answers(case)
    return {number: outcome.get("closed") is True for number, (_, outcome) in zip(numbers, truth.steps, strict=False)}


def broken_target(case: Case, kind: TargetKind, what: str, expected: str) -> CaseResult:
    """The result of a case whose server is not there, or not in its first state."""
    trouble = Difference(0, "", "contract", "server", expected, what)
    return CaseResult(case, "differ", "", (trouble,), target=kind)


def run_case(case: Case, target: Target, truth: Recorded | None) -> CaseResult:
    """Resets the target, runs one case and compares. Never raises for what a server does."""
    try:
        reason = not_testable(case, target)
        if reason is not None:
            return CaseResult(case, "not testable", reason, target=target.kind)
        target.reset()
    except TargetError as error:
        return broken_target(case, target.kind, str(error), "a server in its first state")
    execution = execute(case, target, _closes(case, truth))
    found = tuple(compare(case, truth, execution.answers))
    verdict: Verdict = "differ" if any(decides(difference, target) for difference in found) else "agree"
    return CaseResult(case, verdict, "", found, execution, target.kind)


def record_case(case: Case, target: Target) -> CaseResult:
    """Resets the target and runs one case for its answers; ``differ`` means that they must not be recorded.

    Raises TargetError.
    """
    reason = not_testable(case, target)
    if reason is not None:
        return CaseResult(case, "not testable", reason, target=target.kind)
    target.reset()
    execution = execute(case, target, close_seconds=RECORDING_CLOSE_SECONDS)
    found = tuple(broken_invariants(case, execution.answers))
    return CaseResult(case, "differ" if found else "agree", "", found, execution, target.kind)


def target_at(url: str, trainer_address: str = "127.0.0.1") -> Target:
    """The target behind a URL: a mock when it says so. Raises TargetError or TargetUrlError."""
    if is_mock(Address.of(url)):
        return MockTarget(url, trainer_address)
    return RealTarget(url, trainer_address)


def run(
    target_url: str,
    ids: Sequence[str] | None = None,
    *,
    release: str | None = None,
    truth: Truth | None = None,
    trainer_address: str = "127.0.0.1",
) -> dict[str, CaseResult]:
    """Runs the suite, or the cases ``ids`` of it, against a server and returns the results by case id.

    ``release`` is what ``/version`` says unless given; ``truth`` the recorded one of that release.
    Raises TargetError, TargetUrlError, TruthError, and KeyError for an unknown id.
    """
    target = target_at(target_url, trainer_address)
    held = truth if truth is not None else load(release or target.release)
    cases = {case.id: case for case in cases_for(held.release)}
    chosen = list(cases.values()) if ids is None else [cases[case_id] for case_id in ids]
    return {case.id: run_case(case, target, held.cases.get(case.id)) for case in without_group_first(chosen)}
