"""Which server a run takes, and what it does with servers that it starts itself."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from conformance import choosing, conftest, tiny_model
from conformance.case import RELEASES, Case, Launch
from conformance.choosing import ChoiceError, Chosen, Options, choose
from conformance.dialect import cases_for
from conformance.servers import Pool
from conformance.suite import Suite
from conformance.targets.base import Target, TargetError
from conformance.targets.url import RealTarget
from conformance.truth import load
from mock_vllm import MockServer, Settings

pytestmark = pytest.mark.integration

RELEASE = "0.21.0"
ASKED = Options(target="mock", url=None, release=None, record=False, trainer_address="127.0.0.1")
NOBODY = "http://127.0.0.1:9"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_model.write(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module")
def mock_url(model: Path) -> Iterator[str]:
    with MockServer(Settings(model=str(model), port=0)) as server:
        yield server.url


def test_a_mock_that_answers_on_its_port_is_taken(mock_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choosing, "DEFAULT_URL", mock_url)
    chosen = choose(ASKED)
    assert (chosen.where, chosen.kind, chosen.release) == (f"mock found at {mock_url}", "mock", RELEASE)
    assert not chosen.servers.starts_its_own


def test_a_mock_is_no_real_server(mock_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choosing, "DEFAULT_REAL_URL", mock_url)
    with pytest.raises(ChoiceError, match="--target=real needs a server"):
        choose(replace(ASKED, target="real"))


def test_a_real_server_that_answers_on_its_port_is_taken(mock_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choosing, "DEFAULT_REAL_URL", mock_url)
    monkeypatch.setattr(choosing, "is_mock", lambda _address, _seconds: False)
    chosen = choose(replace(ASKED, target="real"))
    assert (chosen.where, chosen.kind) == (f"real server found at {mock_url}", "real")


def test_a_release_that_is_not_installed_says_how_to_install_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choosing, "DEFAULT_REAL_URL", NOBODY)
    monkeypatch.setenv("CONFORMANCE_REAL_HOME", str(tmp_path))
    with pytest.raises(TargetError, match=r"0\.32\.0 is not installed.*python -m conformance\.real install 0\.32\.0"):
        choose(replace(ASKED, target="real", release="0.32.0"))


@contextmanager
def started(launch: Launch, model: Path) -> Iterator[Target]:
    """A mock in the place of a managed real server."""
    settings = Settings(
        model=str(model), port=0, transfer_timeout=8.0, dev_mode=launch.dev_mode, weight_transfer=launch.weight_transfer
    )
    with MockServer(settings) as server:
        target = RealTarget(server.url, launch=launch, expendable=True)
        target.deadline_seconds = 5.0
        yield target


def suite_of(model: Path) -> Suite:
    pool = Pool(lambda launch, _stop: started(launch, model))
    return Suite(Chosen(pool, "real", "managed", RELEASE), RELEASE, load(RELEASE), False)


def chosen_cases(*ids: str) -> list[Case]:
    known = {case.id: case for case in cases_for(RELEASE)}
    return [known[case_id] for case_id in ids]


def run_all(suite: Suite, cases: list[Case]) -> dict[str, str]:
    """Case id to kind, in the order in which they ran."""
    for case in suite.plan(cases):
        try:
            suite.check(case)
        except (pytest.skip.Exception, pytest.fail.Exception):
            continue
    suite.chosen.servers.close()
    return {result.case.id: result.kind for result in suite.results}


def test_managed_servers_show_launches_and_what_comes_before_the_first_init(model: Path) -> None:
    suite = suite_of(model)
    cases = chosen_cases("INIT-001", "UPDATE-024", "START-025", "LAUNCH-001", "LAUNCH-004", "FAILED-001", "ORDER-003")
    assert run_all(suite, cases) == {
        "UPDATE-024": "agrees",
        "START-025": "agrees",
        "INIT-001": "agrees",
        "FAILED-001": "agrees",
        "ORDER-003": "agrees",
        "LAUNCH-004": "agrees",
        "LAUNCH-001": "agrees",
    }
    assert suite.unseen() == []


def test_a_case_that_becomes_untestable_unseen_fails_the_run(model: Path) -> None:
    suite = suite_of(model)
    assert run_all(suite, chosen_cases("ORDER-003", "SYNC-001")) == {"ORDER-003": "agrees", "SYNC-001": "not testable"}
    assert suite.unseen() == [
        "SYNC-001 is not testable any more: the server has no worker extension that tells what it received"
    ]
    assert suite.summary()[-1:] == suite.unseen()
    assert exit_status(suite, pytest.ExitCode.OK) == pytest.ExitCode.TESTS_FAILED
    suite.truth = replace(suite.truth, not_testable={"SYNC-001": suite.results[1].reason})
    assert exit_status(suite, pytest.ExitCode.OK) == pytest.ExitCode.OK
    suite.truth = replace(suite.truth, not_testable={**suite.truth.not_testable, "ORDER-003": "gone"})
    assert exit_status(suite, pytest.ExitCode.OK) == pytest.ExitCode.TESTS_FAILED
    assert exit_status(suite, pytest.ExitCode.INTERRUPTED) == pytest.ExitCode.INTERRUPTED


def exit_status(suite: Suite, before: pytest.ExitCode) -> pytest.ExitCode:
    """What a pytest session with this suite ends with."""
    session = SimpleNamespace(config=SimpleNamespace(stash={conftest._SUITE: suite}), exitstatus=before)
    conftest.pytest_sessionfinish(session)  # type: ignore[arg-type]
    return session.exitstatus


def test_a_server_that_a_case_spoiled_is_replaced_and_the_case_named(model: Path) -> None:
    servers = 0

    @contextmanager
    def start(launch: Launch, _stop: threading.Event) -> Iterator[Target]:
        nonlocal servers
        servers += 1
        with started(launch, model) as target:
            yield target

    suite = suite_of(model)
    pool = Pool(start)
    suite = replace(suite, chosen=replace(suite.chosen, servers=pool))
    first, second = suite.plan(chosen_cases("ORDER-003", "ORDER-009"))
    suite.check(first)
    spoiled = pool.target_for(second)

    def broken() -> None:
        raise TargetError("it does not close its session")

    resets = [spoiled.reset, broken]
    spoiled.reset = lambda: resets.pop(0)()  # type: ignore[method-assign]
    with pytest.raises(pytest.fail.Exception, match="it does not close its session"):
        suite.check(second)
    assert pool.replaced == [second.id]
    assert pool.target_for(first) is not spoiled
    pool.close()
    assert servers == 2


def test_every_known_release_can_be_asked_for() -> None:
    assert [release for release in RELEASES if not cases_for(release)] == []
