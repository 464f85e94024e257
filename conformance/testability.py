"""Which cases a managed server cannot show: the truth lists them, and the list may not change unseen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from conformance.runner import CaseResult


def found_untestable(results: Sequence[CaseResult]) -> dict[str, str]:
    """Case id to reason, of the cases that were not testable, by id."""
    return {
        result.case.id: result.reason
        for result in sorted(results, key=lambda result: result.case.id)
        if result.verdict == "not testable"
    }


def unseen_changes(listed: Mapping[str, str], results: Sequence[CaseResult]) -> list[str]:
    """One line for each case that ran and whose testability is not what the truth lists: new, gone, another reason."""
    found = found_untestable(results)
    lines = []
    for case_id in sorted(result.case.id for result in results):
        now, before = found.get(case_id), listed.get(case_id)
        if now == before:
            continue
        if before is None:
            lines.append(f"{case_id} is not testable any more: {now}")
        elif now is None:
            lines.append(f"{case_id} is testable now, the truth lists it as not testable: {before}")
        else:
            lines.append(f"{case_id} is not testable for another reason: {now} (listed: {before})")
    return lines
