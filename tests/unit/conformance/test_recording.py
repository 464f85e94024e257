"""What a recording keeps, replaces and says of itself; and that what cannot be tested may not change unseen."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.case import Case
from conformance.choosing import Chosen
from conformance.dialect import cases_for
from conformance.execution import Execution, StepAnswer
from conformance.recording import recorded_truth
from conformance.runner import CaseResult
from conformance.testability import found_untestable, unseen_changes
from conformance.truth import Recorded, Truth

pytestmark = pytest.mark.unit

CASES = {case.id: case for case in cases_for("0.21.0")}
OLD = Recorded("an old sentence", (("GET /health", {"status": 503}),))
NEW = {"status": 200, "content_type": None, "body": "", "closed": False}


def ran(case_id: str, verdict: Any = "agree", reason: str = "") -> CaseResult:
    case: Case = CASES[case_id]
    execution = None if verdict == "not testable" else Execution([StepAnswer(1, "GET /health", dict(NEW))])
    return CaseResult(case, verdict, reason, (), execution, "real")


class Servers:
    def __init__(self, own: bool) -> None:
        self.starts_its_own = own


def chosen(own: bool = True) -> Chosen:
    facts: dict[str, object] = {"versions": {"torch": "2.11.0"}, "wheel": {"sha256": "00"}}
    return Chosen(Servers(own), "real", "somewhere", "0.21.0", lambda: facts if own else {})  # type: ignore[arg-type]


BEFORE = Truth(
    "0.21.0",
    "recorded",
    {"date": "2020-01-01", "wheel": "by hand"},
    {"HTTP-001": OLD, "HTTP-002": OLD, "HTTP-999": OLD, "HTTP-003": OLD},
    {"HTTP-003": "old reason", "HTTP-004": "kept, it did not run"},
)


def test_what_ran_replaces_what_was_recorded_and_the_rest_stays() -> None:
    results = [ran("HTTP-001"), ran("HTTP-003"), ran("HTTP-002", "differ"), ran("HTTP-005", "not testable", "why")]
    made = recorded_truth(BEFORE, results, chosen(), ("note=1",))
    assert made is not None
    assert dict(made.cases) == {
        "HTTP-001": Recorded(CASES["HTTP-001"].sentence, (("GET /health", NEW),)),
        "HTTP-002": OLD,  # its invariants broke
        "HTTP-003": Recorded(CASES["HTTP-003"].sentence, (("GET /health", NEW),)),
    }
    assert dict(made.not_testable) == {"HTTP-004": "kept, it did not run", "HTTP-005": "why"}
    assert made.made_by == "recorded"


def test_the_provenance_comes_from_the_environment_and_the_notes() -> None:
    made = recorded_truth(BEFORE, [ran("HTTP-001")], chosen(), ("note=a=b",))
    assert made is not None
    assert made.provenance["wheel"] == {"sha256": "00"}
    assert made.provenance["versions"] == {"torch": "2.11.0"}
    assert made.provenance["note"] == "a=b"
    assert made.provenance["date"] != "2020-01-01"
    assert str(made.provenance["suite"]).endswith("3 cases")


def test_a_server_that_somebody_else_started_says_nothing_about_testability() -> None:
    made = recorded_truth(BEFORE, [ran("HTTP-001"), ran("HTTP-005", "not testable", "x")], chosen(own=False), ())
    assert made is not None
    assert dict(made.not_testable) == dict(BEFORE.not_testable)
    assert made.provenance["wheel"] == "by hand"


def test_nothing_recorded_writes_nothing() -> None:
    assert recorded_truth(BEFORE, [ran("HTTP-001", "differ")], chosen(), ()) is None


def test_what_cannot_be_tested_may_not_change_unseen() -> None:
    results = [
        ran("HTTP-001", "not testable", "new"),
        ran("HTTP-002"),
        ran("HTTP-003", "not testable", "another reason"),
        ran("HTTP-004", "not testable", "the same"),
        ran("HTTP-005"),
    ]
    listed = {"HTTP-002": "gone", "HTTP-003": "a reason", "HTTP-004": "the same", "HTTP-006": "did not run"}
    assert unseen_changes(listed, results) == [
        "HTTP-001 is not testable any more: new",
        "HTTP-002 is testable now, the truth lists it as not testable: gone",
        "HTTP-003 is not testable for another reason: another reason (listed: a reason)",
    ]
    assert unseen_changes(found_untestable(results), results) == []
