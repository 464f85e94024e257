"""One run of the suite under pytest: its target, its truth, what was found, and what is to be recorded."""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import metadata

import pytest

from conformance.case import Case
from conformance.cases import all_cases
from conformance.http_driver import Address, TargetUrlError
from conformance.runner import CaseResult, record_case, run_case
from conformance.targets.base import Target, TargetError
from conformance.targets.mock import DEFAULT_URL, MockTarget, default_is_running, is_mock, started_mock
from conformance.targets.url import RealTarget
from conformance.truth import Recorded, Truth, TruthError, load, path_of, recorded, recorded_releases, save

DEFAULT_RELEASE = "0.21.0"
LEVELS = ("contract", "wording", "platform")


@dataclass(frozen=True)
class Options:
    """The command line's wishes. ``notes`` are KEY=VALUE pairs for the provenance of a recording."""

    target: str
    url: str | None
    release: str | None
    record: bool
    trainer_address: str
    notes: tuple[str, ...] = ()


@dataclass
class Suite:
    """A target, the truth it is held to, and the results so far."""

    target: Target
    where: str
    release: str
    truth: Truth
    recording: bool
    results: list[CaseResult] = field(default_factory=list)

    @property
    def header(self) -> str:
        """The line for the top of the report."""
        verb = "recording" if self.recording else "against the truth of"
        return f"conformance: {self.where}, vLLM {self.target.release}, {verb} {self.release}"

    def cases_of(self, cases: list[Case]) -> list[Case]:
        """Those of a module that apply to the release."""
        return [case for case in cases if self.release in case.applies_to]

    def check(self, case: Case) -> None:
        """Runs one case; fails or skips the test, or returns."""
        __tracebackhide__ = True
        if self.recording:
            result = record_case(case, self.target)
        else:
            result = run_case(case, self.target, self.truth.cases.get(case.id))
        self.results.append(result)
        if result.verdict == "not testable":
            pytest.skip(f"not testable: {result.reason}")
        if result.verdict == "differ":
            pytest.fail(result.text, pytrace=False)

    def summary(self) -> list[str]:
        """Counts by level and verdict, then the differences that only warn."""
        lines = []
        for level in LEVELS:
            counts = Counter(result.verdict for result in self.results if result.case.level == level)
            if counts:
                parts = [f"{counts[verdict]} {verdict}" for verdict in ("agree", "differ", "not testable")]
                lines.append(f"{level}: {', '.join(parts)}")
        warned = [result for result in self.results if result.verdict == "agree" and result.differences]
        if warned:
            lines.append(f"{len(warned)} agree but for texts or facts of the platform:")
            lines += [result.text for result in warned]
        return lines

    def save_recording(self, notes: tuple[str, ...]) -> str | None:
        """Writes the truth file, keeping recorded cases that did not run; None when nothing could be recorded."""
        fresh = {
            result.case.id: recorded(result.case, result.execution.answers)
            for result in self.results
            if result.verdict == "agree" and result.execution is not None
        }
        if not fresh:
            return None
        known = {case.id for case in all_cases()}
        kept: dict[str, Recorded] = {key: value for key, value in self.truth.cases.items() if key in known}
        provenance = {**self.truth.provenance, **dict(note.split("=", 1) for note in notes)}
        provenance["date"] = datetime.now(UTC).date().isoformat()
        provenance["data_plane"] = "TCP plane"
        provenance["suite"] = f"{_suite_version()}, {len({**kept, **fresh})} cases"
        return str(save(Truth(self.release, "recorded", provenance, {**kept, **fresh})))


def _suite_version() -> str:
    try:
        return metadata.version("vllm-weight-sync-conformance")
    except metadata.PackageNotFoundError:
        return "not installed"


def _target(options: Options, stack: ExitStack) -> tuple[Target, str]:
    if options.target == "real":
        if not options.url:
            raise pytest.UsageError(
                "--target=real needs the server: give --target-url=http://HOST:PORT or set VLLM_CONFORMANCE_URL"
            )
        return RealTarget(options.url, options.trainer_address), f"real server at {options.url}"
    if options.url:
        if not is_mock(Address.of(options.url)):
            raise pytest.UsageError(f"{options.url} is no mock (its answers lack x-mock-vllm): use --target=real")
        return MockTarget(options.url, options.trainer_address), f"mock at {options.url}"
    if default_is_running():
        return MockTarget(DEFAULT_URL, options.trainer_address), f"mock found at {DEFAULT_URL}"
    url = stack.enter_context(started_mock(options.release or DEFAULT_RELEASE))
    return MockTarget(url, options.trainer_address), f"mock started at {url}"


def open_suite(options: Options, stack: ExitStack) -> Suite:
    """Finds or starts the target (``stack`` stops it) and loads its truth. Raises pytest.UsageError, in one line."""
    bad = [note for note in options.notes if "=" not in note]
    if bad:
        raise pytest.UsageError(f"--record-note {bad[0]!r} is not of the form KEY=VALUE")
    if options.record and options.target != "real":
        raise pytest.UsageError("--record is for real servers: a truth recorded from a mock would prove nothing")
    try:
        target, where = _target(options, stack)
        release = options.release or target.release
        if options.record:
            if release != target.release:
                raise pytest.UsageError(f"the server is vLLM {target.release}, not {release}: cannot record")
            exists = path_of(release).exists()
            return Suite(target, where, release, load(release) if exists else Truth(release, "recorded", {}, {}), True)
        return Suite(target, where, release, load(release), False)
    except (TargetError, TargetUrlError, TruthError) as error:
        raise pytest.UsageError(str(error)) from error


def listing() -> str:
    """Every case with its level, releases, sentence and source, one line each, as text."""
    rows = [
        f"{case.id}  {case.level}  {','.join(case.applies_to)}  {case.sentence}  [{case.source}]"
        for case in sorted(all_cases(), key=lambda case: case.id)
    ]
    return "\n".join([*rows, f"{len(rows)} cases; recorded: {', '.join(recorded_releases()) or 'none'}"]) + "\n"
