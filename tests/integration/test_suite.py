"""The suite as its users run it: in process, and by its command line."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from conformance import CaseResult, run, run_case, tiny_model
from conformance.case import USUAL
from conformance.dialect import cases_for
from conformance.runner import target_at
from conformance.targets.url import RealTarget
from conformance.truth import load
from mock_vllm import MockServer, Settings

pytestmark = pytest.mark.integration

RELEASE = "0.21.0"
CASES = cases_for(RELEASE)
STARTED_HERE = {case.id for case in CASES if case.spoils or case.launch != USUAL}
"""Cases that only a server shows which the suite starts itself."""
AT_HAND = {case.id for case in CASES} - STARTED_HERE


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tiny_model.write(tmp_path_factory.mktemp("tiny")))


@pytest.fixture(scope="module")
def mock(model: str) -> Iterator[MockServer]:
    with MockServer(Settings(model=model, port=0, transfer_timeout=30.0)) as server:
        yield server


def reds(results: dict[str, CaseResult]) -> list[str]:
    return [result.text for result in results.values() if result.verdict == "differ"]


def untestable(results: dict[str, CaseResult]) -> set[str]:
    return {case_id for case_id, result in results.items() if result.verdict == "not testable"}


def verdicts(results: dict[str, CaseResult]) -> Counter[str]:
    return Counter(result.verdict for result in results.values())


def test_a_mock_agrees_with_the_truth_in_every_case(mock: MockServer) -> None:
    results = run(mock.url)
    assert reds(results) == []
    assert {case_id for case_id, result in results.items() if result.verdict == "agree"} == AT_HAND
    assert set(results) - AT_HAND == STARTED_HERE


def test_chosen_cases_run_alone(mock: MockServer) -> None:
    results = run(mock.url, ids=["ORDER-003", "HTTP-002"])
    assert sorted(results) == ["HTTP-002", "ORDER-003"]
    with pytest.raises(KeyError, match="ORDER-999"):
        run(mock.url, ids=["ORDER-999"])


def test_a_case_leaves_nothing_behind(mock: MockServer) -> None:
    # Every case ends with an open session or a pause in some way; the next one must not see it.
    ids = ["ORDER-001", "FAILED-001", "PAUSE-004", "PLANE-001", "QUEUE-010", "ORDER-003", "HTTP-001"]
    for case_id in ids:
        assert reds(run(mock.url, ids=[case_id])) == []


def test_a_bare_model_name_leaves_cases_not_testable_and_the_rest_green() -> None:
    with MockServer(Settings(model="any-name", port=0, transfer_timeout=30.0)) as server:
        results = run(server.url)
    assert reds(results) == []
    untested = untestable(results) - STARTED_HERE
    assert untested == {case.id for case in CASES if "checked model" in case.needs}
    assert {results[case_id].reason for case_id in untested} == {
        "the mock serves a bare model name and accepts any tensor"
    }


def test_without_a_receiver_the_data_plane_is_not_testable(model: str) -> None:
    with MockServer(Settings(model=model, port=0, receiver="none")) as server:
        results = run(server.url)
    assert reds(results) == []
    untested = untestable(results) - STARTED_HERE
    assert untested == {case.id for case in CASES if case.needs - {"no group", "completions"}} & AT_HAND


def test_the_wording_of_an_in_process_executor_is_the_same_fact(model: str) -> None:
    ids = ["ORDER-001", "ORDER-002", "ORDER-003", "UPDATE-016", "FAILED-001"]
    with MockServer(Settings(model=model, port=0, executor="uni")) as server:
        assert reds(run(server.url, ids=ids)) == []


def test_several_ranks_are_all_asked(model: str) -> None:
    with MockServer(Settings(model=model, port=0, transfer_timeout=30.0, data_parallel_size=2)) as server:
        results = run(server.url, ids=["SYNC-001", "BUCKET-007", "BUCKET-008"])
    assert reds(results) == []


def test_a_server_that_does_not_call_itself_a_mock_is_reset_and_judged_over_http_alone(mock: MockServer) -> None:
    target = RealTarget(mock.url)
    target.deadline_seconds, target.patience = 5.0, 0.2
    truth = load(RELEASE)
    cases = {case.id: case for case in CASES}
    ids = ["ORDER-001", "FAILED-001", "PAUSE-004", "INIT-001", "FAILED-023", "QUEUE-002", "ORDER-003"]
    results = {case_id: run_case(cases[case_id], target, truth.cases[case_id]) for case_id in ids}
    assert reds(results) == []
    assert verdicts(results) == {"agree": len(ids)}
    for case_id, reason in {
        "SYNC-001": "the server has no worker extension that tells what it received",
        "UPDATE-024": "the server has joined a group before: needs one that was just started",
    }.items():
        result = run_case(cases[case_id], target, truth.cases[case_id])
        assert (result.verdict, result.reason) == ("not testable", reason)


def test_the_kind_of_a_target_is_found_out(mock: MockServer) -> None:
    assert target_at(mock.url).kind == "mock"


def suite(*arguments: str, url: str | None = None) -> subprocess.CompletedProcess[str]:
    """`pytest conformance` as a user starts it."""
    environment = {key: value for key, value in os.environ.items() if key != "VLLM_CONFORMANCE_URL"}
    if url is not None:
        environment["VLLM_CONFORMANCE_URL"] = url
    return subprocess.run(
        [sys.executable, "-m", "pytest", "conformance", "-q", *arguments],
        capture_output=True,
        text=True,
        env=environment,
        cwd=Path(__file__).parents[2],
        timeout=100,
        check=False,
    )


def test_the_command_line_says_which_server_it_tests(mock: MockServer) -> None:
    by_option = suite("--target=mock", f"--target-url={mock.url}", "-k", "HTTP-002 or ORDER-003")
    assert by_option.returncode == 0, by_option.stdout
    assert f"conformance: mock at {mock.url}, vLLM {RELEASE}, against the truth of {RELEASE}" in by_option.stdout
    assert "contract: 2 agrees\n" in by_option.stdout
    by_variable = suite("-k", "HTTP-002", url=mock.url)
    assert f"conformance: mock at {mock.url}" in by_variable.stdout


def test_without_a_url_a_mock_is_found_or_started() -> None:
    done = suite("--target=mock", "-k", "HTTP-002 or SYNC-001")
    assert done.returncode == 0, done.stdout
    assert "conformance: a mock started for this run" in done.stdout or "mock found at" in done.stdout


def test_a_difference_shows_the_step_and_nothing_of_the_suites_code(tmp_path: Path, model: str) -> None:
    # A mock of another world size answers another number: a fact of the launch, and so a difference on a mock.
    with MockServer(Settings(model=model, port=0, data_parallel_size=2)) as server:
        done = suite(f"--target-url={server.url}", "-k", "HTTP-007", "-rN")
    assert done.returncode == 1
    shown = done.stdout[done.stdout.index("HTTP-007  ") :].splitlines()[:5]
    assert shown == [
        "HTTP-007  an unknown query parameter is ignored",
        "  step 1: GET /get_world_size?tp=2",
        "    body.world_size (platform)",
        "      expected: 1",
        "      actual:   2",
    ]
    assert "Traceback" not in done.stdout
    assert "platform: 1 platform differs\n" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("--target=real",), "--target=real needs a server: give --target-url=http://HOST:PORT"),
        (("--target=real", "--vllm-version=0.99.0"), "not installed here: python -m conformance.real install 0.99.0"),
        (("--target=real", "--vllm-version=latest"), "'latest' is no vLLM release"),
        (("--target=mock", "--vllm-version=0.99.0"), "no mock of vLLM 0.99.0: "),
        (("--target=mock", "--record"), "--record is for real servers"),
        (("--target-url=http://127.0.0.1:9",), "GET http://127.0.0.1:9/health: cannot send to the server"),
        (("--target-url=127.0.0.1:8000",), "is not of the form http://HOST:PORT"),
        (("--target=real", "--target-url={mock}", "--vllm-version=0.1.0"), "no truth for vLLM 0.1.0 (recorded: "),
        (("--target=real", "--target-url={mock}", "--record-note=x"), "--record-note 'x' is not of the form KEY=VALUE"),
    ],
)
def test_what_cannot_run_is_one_line(mock: MockServer, arguments: tuple[str, ...], text: str) -> None:
    done = suite(*(argument.format(mock=mock.url) for argument in arguments))
    assert done.returncode == 4, done.stdout
    errors = [line for line in done.stderr.splitlines() if line]
    assert len(errors) == 1, done.stderr
    assert errors[0].startswith("ERROR: ")
    assert text in errors[0]
