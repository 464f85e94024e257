"""From the results of a run to a truth: what is recorded, what is kept, and where it was seen."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from importlib import metadata

from conformance.choosing import Chosen
from conformance.dialect import cases_for
from conformance.runner import CaseResult
from conformance.testability import found_untestable
from conformance.truth import Truth, recorded

DISTRIBUTION = "vllm-weight-sync-conformance"


def suite_version() -> str:
    """The version of this project, as installed."""
    try:
        return metadata.version(DISTRIBUTION)
    except metadata.PackageNotFoundError:
        return "not installed"


def recorded_truth(
    before: Truth, results: Sequence[CaseResult], chosen: Chosen, notes: tuple[str, ...]
) -> Truth | None:
    """The truth after a recording run; None when no case could be recorded.

    A case that ran replaces what was recorded of it; one that did not run, or whose invariants broke, stays as it was.
    ``notes`` are KEY=VALUE pairs for the provenance. The list of what is not testable comes from managed servers only.
    """
    fresh = {
        result.case.id: recorded(result.case, result.execution.answers)
        for result in results
        if result.verdict == "agree" and result.execution is not None
    }
    if not fresh:
        return None
    known = {case.id for case in cases_for(before.release)}
    cases = {key: value for key, value in {**before.cases, **fresh}.items() if key in known}
    untestable = dict(before.not_testable)
    if chosen.servers.starts_its_own:
        ran = {result.case.id for result in results}
        untestable = {key: why for key, why in untestable.items() if key in known - ran} | found_untestable(results)
    provenance = {
        **(chosen.provenance() or before.provenance),
        **dict(note.split("=", 1) for note in notes),
        "date": datetime.now(UTC).date().isoformat(),
        "data_plane": "TCP plane",
        "suite": f"{suite_version()}, {len(cases)} cases",
    }
    return Truth(before.release, "recorded", provenance, cases, untestable)
