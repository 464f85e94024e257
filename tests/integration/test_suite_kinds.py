"""What is wrong is called by its name: contract, wording or bytes of a mock; drift of a real server; an edited file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from conformance import CaseResult, run, run_case, tiny_model
from conformance.case import Case
from conformance.compare import compare
from conformance.dialect import cases_for
from conformance.execution import execute
from conformance.http_driver import Address
from conformance.request_data import describe
from conformance.steps import Dies, Step, Tokens
from conformance.targets.base import ask
from conformance.targets.url import RealTarget
from conformance.truth import Recorded, load, path_of
from mock_vllm import MockApp, MockServer, Settings, build_engine
from mock_vllm.http.journaling import Message, Receive, Scope, Send
from tests.broken_servers.catalogue import BROKEN

pytestmark = pytest.mark.integration

RELEASE = "0.21.0"
IDS = ["ORDER-001", "FAILED-001", "FAILED-002", "HTTP-009", "UPDATE-006", "SYNC-004", "BUCKET-001", "PAUSE-001"]


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    model = tiny_model.write(tmp_path_factory.mktemp("tiny"))
    return Settings(model=str(model), port=0, transfer_timeout=8.0)


def kinds(result: CaseResult) -> set[str]:
    return {difference.kind for difference in result.differences}


@pytest.mark.parametrize(
    ("name", "red"),
    [
        # one status
        ("a wrong method is not found", {"HTTP-009": ("mock differs", {"contract"})}),
        ("refusals are 422", {"UPDATE-006": ("mock differs", {"contract"})}),
        # one message
        ("a second start is worded otherwise", {case: ("wording differs", {"wording"}) for case in IDS[:2]}),
        # one session rule
        ("a second start is fine", {case: ("mock differs", {"contract"}) for case in IDS[:2]}),
        ("a failed update closes the session", {case: ("mock differs", {"contract"}) for case in IDS[1:3]}),
        # bytes
        ("one bit of every broadcast is flipped", {case: ("mock differs", {"bytes"}) for case in IDS[5:7]}),
        # the shape of an answer
        ("pause says more", {"PAUSE-001": ("mock differs", {"contract"})}),
    ],
)
def test_a_changed_mock_is_caught_as_the_right_kind(
    name: str, red: dict[str, tuple[str, set[str]]], settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    (broken,) = [server for server in BROKEN if server.name == name]
    with broken.serving(settings, monkeypatch) as url:
        results = run(url, ids=IDS)
    found = {case_id: (result.kind, kinds(result)) for case_id, result in results.items() if result.verdict == "differ"}
    assert found == red


class StandInForReal(MockApp):
    """A mock that does not say so: the suite must take it for a real server."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def without_header(message: Message) -> None:
            if message["type"] == "http.response.start":
                kept = [(name, value) for name, value in message["headers"] if name.lower() != b"x-mock-vllm"]
                message = {**message, "headers": kept}
            await send(message)

        await super().__call__(scope, receive, without_header)


@pytest.fixture(scope="module")
def real_url(settings: Settings) -> Iterator[str]:
    with stand_in(settings) as url:
        yield url


@contextmanager
def stand_in(settings: Settings) -> Iterator[str]:
    with MockServer(settings, StandInForReal(build_engine(settings))) as server:
        yield server.url


def edited(tmp_path: Path, case_id: str, step: int, key: str, value: object) -> Path:
    """A copy of the truth with one answer changed by hand."""
    document = json.loads(path_of(RELEASE).read_text())
    entry = document["cases"][case_id]["steps"][step]
    if key == "message":
        entry["body"]["error"]["message"] = value
    else:
        assert key in entry
        entry[key] = value
    path_of(RELEASE, tmp_path).write_text(json.dumps(document))
    return tmp_path


def test_a_real_server_that_does_what_was_recorded_agrees(real_url: str) -> None:
    results = run(real_url, ids=IDS[:5])
    assert {(result.kind, result.target) for result in results.values()} == {("agrees", "real")}


@pytest.mark.parametrize(
    ("release", "ids"),
    [
        ("0.21.0", ["FAILED-001", "DEAD-004", "FAILED-009", "ORDER-003", "PAUSE-025", "HTTP-001"]),
        ("0.32.0", ["FAILED-001", "DEAD-004", "FAILED-009", "VERSION-002", "VERSION-001", "CHECKER-009", "ORDER-003"]),
    ],
)
def test_what_a_case_leaves_behind_is_gone_after_a_reset(settings: Settings, release: str, ids: list[str]) -> None:
    # 0.21.0 leaves an open session, 0.32.0 a closed one and a model without data, where a completion would be the end.
    with stand_in(replace(settings, vllm_version=release)) as url:
        target = RealTarget(url)
        known = {case.id: case for case in cases_for(release)}
        truth = load(release)
        for case_id in ids:
            result = run_case(known[case_id], target, truth.cases[case_id])
            assert result.kind in ("agrees", "not testable"), result.text
            target.reset()
            assert outcome(url, "GET", "/is_paused") == (200, {"is_paused": False})
            assert outcome(url, "POST", "/finish_weight_update")[0] == 500
            assert outcome(url, "POST", "/v1/completions")[0] == 200


def one_step(step: Step) -> tuple[Case, Recorded]:
    """A case of one step, recorded as its server should do."""
    case = Case("X-001", "a sentence", (step,), "routes", "source")
    ends = {"process": "ended"} if isinstance(step, Dies) else {"status": 200, "like": []}
    return case, Recorded("a sentence", ((describe(step), ends),))


def test_a_server_that_outlives_its_engine_is_caught(real_url: str) -> None:
    case, truth = one_step(Dies(0.3))
    result = run_case(case, RealTarget(real_url), truth)
    assert (result.kind, kinds(result)) == ("real drifted", {"contract"})
    assert "'process': 'still answers'" in result.text


def test_a_server_that_cannot_complete_is_caught(real_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    case, truth = one_step(Tokens("a"))
    assert run_case(case, RealTarget(real_url), truth).kind == "agrees"
    monkeypatch.setattr(RealTarget, "model_id", "tiny")
    answers = execute(case, RealTarget(f"{real_url}/nowhere")).answers
    assert [answer.outcome for answer in answers] == [{"failed": "no completion: 404 {'detail': 'Not Found'}"}]
    assert [difference.kind for difference in compare(case, truth, answers)] == ["contract"]


def outcome(url: str, method: str, path: str) -> tuple[int, object]:
    body = {"model": RealTarget(url).model_id, "prompt": [1, 2], "max_tokens": 2} if "completions" in path else {}
    reply = ask(Address.of(url), method, path, 5.0, body if method == "POST" else None)
    return reply.status, reply.body


@pytest.mark.parametrize(
    ("case_id", "step", "key", "value", "kind", "verdict"),
    [
        ("ORDER-001", 1, "status", 409, "real drifted", "differ"),
        ("FAILED-002", 2, "closed", True, "real drifted", "differ"),
        ("UPDATE-006", 1, "message", "Missing 'update_info'", "wording differs", "agree"),
    ],
)
def test_a_truth_edited_by_hand_is_caught_by_the_next_real_run(
    tmp_path: Path, real_url: str, case_id: str, step: int, key: str, value: object, kind: str, verdict: str
) -> None:
    truth = load(RELEASE, edited(tmp_path, case_id, step, key, value))
    results = run(real_url, ids=IDS[:5], truth=truth)
    found = {other: (result.kind, result.verdict) for other, result in results.items() if result.differences}
    assert found == {case_id: (kind, verdict)}
    shown = results[case_id].text
    assert f"expected: {value!r}" in shown
    assert "actual:   " in shown
