"""The journal is bounded, numbered, and cuts bodies."""

from __future__ import annotations

import pytest

from mock_vllm import journal as journal_module
from mock_vllm.journal import Journal

pytestmark = pytest.mark.unit


def test_a_call_under_way_has_no_status() -> None:
    journal = Journal()
    entry = journal.begin_call("POST", "/update_weights", "")
    assert journal.read()["entries"][0]["status"] is None
    journal.end_call(entry, b"x" * 5000, 5000, 200, b"\xff")
    (shown,) = journal.read()["entries"]
    assert (shown["status"], shown["request_bytes"], len(shown["request"])) == (200, 5000, 2000)
    assert shown["seconds"] >= 0


def test_since_skips_what_was_read() -> None:
    journal = Journal()
    for detail in "abc":
        journal.plane_event(0, "joined", detail)
    assert [entry["detail"] for entry in journal.read(since=1)["entries"]] == ["b", "c"]


def test_old_entries_are_dropped_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_module, "MAX_ENTRIES", 2)
    journal = Journal()
    for detail in "abc":
        journal.plane_event(0, "joined", detail)
    assert journal.read()["dropped"] == 1
    assert [entry["n"] for entry in journal.read()["entries"]] == [2, 3]
    journal.clear()
    assert journal.read() == {"dropped": 0, "entries": []}
