"""One run of the suite under pytest: its servers, its truth, and what was found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

import pytest

from conformance.case import Case
from conformance.cases import all_cases
from conformance.choosing import ChoiceError, Chosen, Options, choose
from conformance.dialect import in_release
from conformance.http_driver import TargetUrlError
from conformance.recording import recorded_truth
from conformance.runner import KINDS, CaseResult, broken_target, record_case, run_case
from conformance.targets.base import TargetError
from conformance.testability import unseen_changes
from conformance.truth import Truth, TruthError, load, path_of, recorded_releases, save

LEVELS = ("contract", "wording", "platform")
_IDLE = "a server that can be brought back to idle after this case"


@dataclass
class Suite:
    """The servers, the truth they are held to, and the results so far."""

    chosen: Chosen
    release: str
    truth: Truth
    recording: bool
    results: list[CaseResult] = field(default_factory=list)

    @property
    def header(self) -> str:
        """The line for the top of the report."""
        verb = "recording" if self.recording else "against the truth of"
        return f"conformance: {self.chosen.where}, vLLM {self.chosen.release}, {verb} {self.release}"

    def cases_of(self, cases: list[Case]) -> list[Case]:
        """Those of a module that apply to the release, in its words."""
        return [in_release(case, self.release) for case in cases if self.release in case.applies_to]

    def plan(self, cases: Sequence[Case]) -> list[Case]:
        """Told which cases will run; returns them in the order in which they must."""
        return self.chosen.servers.plan(cases)

    def check(self, case: Case) -> None:
        """Runs one case; fails or skips the test, or returns."""
        __tracebackhide__ = True
        result = self._result(case)
        self.results.append(result)
        if result.verdict == "not testable":
            pytest.skip(f"not testable: {result.reason}")
        if result.verdict == "differ":
            pytest.fail(f"{result.kind}\n{result.text}", pytrace=False)

    def _result(self, case: Case) -> CaseResult:
        try:
            target = self.chosen.servers.target_for(case)
            if self.recording:
                result = record_case(case, target)
            else:
                result = run_case(case, target, self.truth.cases.get(case.id))
        except TargetError as error:
            return broken_target(case, self.chosen.kind, str(error), "a server")
        trouble = None if result.verdict == "not testable" else self.chosen.servers.after(case)
        return result if trouble is None else broken_target(case, self.chosen.kind, trouble, _IDLE)

    def unseen(self) -> list[str]:
        """What a managed server cannot show and the truth does not say so, or the other way round."""
        if self.recording or self.chosen.kind != "real" or not self.chosen.servers.starts_its_own:
            return []
        return unseen_changes(self.truth.not_testable, self.results)

    def summary(self) -> list[str]:
        """Counts by level and kind, then the differences that only warn."""
        lines = []
        for level in LEVELS:
            counts = Counter(result.kind for result in self.results if result.case.level == level)
            if counts:
                lines.append(f"{level}: {', '.join(f'{counts[kind]} {kind}' for kind in KINDS if counts[kind])}")
        warned = [result for result in self.results if result.verdict == "agree" and result.differences]
        if warned:
            lines.append(f"{len(warned)} only warn, since they differ in texts or facts of the platform:")
            lines += [f"{result.kind}\n{result.text}" for result in warned]
        return lines + self.unseen()

    def save_recording(self, notes: tuple[str, ...]) -> str | None:
        """Writes the truth file, keeping recorded cases that did not run; None when nothing could be recorded."""
        made = recorded_truth(self.truth, self.results, self.chosen, notes)
        return None if made is None else str(save(made))


def _held_to(chosen: Chosen, options: Options) -> Suite:
    release = options.release or chosen.release
    if not options.record:
        return Suite(chosen, release, load(release), False)
    if release != chosen.release:
        raise ChoiceError(f"the server is vLLM {chosen.release}, not {release}: cannot record")
    truth = load(release, to_record=True) if path_of(release).exists() else Truth(release, "recorded", {}, {})
    return Suite(chosen, release, truth, True)


def open_suite(options: Options, stack: ExitStack) -> Suite:
    """Finds the target (``stack`` ends what it starts) and loads its truth. Raises pytest.UsageError, in one line."""
    bad = [note for note in options.notes if "=" not in note]
    if bad:
        raise pytest.UsageError(f"--record-note {bad[0]!r} is not of the form KEY=VALUE")
    if options.record and options.target != "real":
        raise pytest.UsageError("--record is for real servers: a truth recorded from a mock would prove nothing")
    try:
        chosen = choose(options)
        stack.callback(chosen.servers.close)
        return _held_to(chosen, options)
    except (ChoiceError, TargetError, TargetUrlError, TruthError) as error:
        raise pytest.UsageError(str(error)) from error


def listing() -> str:
    """Every case with its level, releases, sentence and source, one line each, as text."""
    rows = [
        f"{case.id}  {case.level}  {','.join(case.applies_to)}  {case.sentence}  [{case.source}]"
        for case in sorted(all_cases(), key=lambda case: case.id)
    ]
    return "\n".join([*rows, f"{len(rows)} cases; recorded: {', '.join(recorded_releases()) or 'none'}"]) + "\n"
