"""The suite's command line: ``pytest conformance --target=mock|real``."""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack

import pytest

from conformance.case import Case
from conformance.choosing import Options
from conformance.suite import Suite, listing, open_suite

CASE_SECONDS = 600
_SUITE = pytest.StashKey[Suite]()
_STACK = pytest.StashKey[ExitStack]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """The suite's own options."""
    group = parser.getgroup("conformance", "conformance with a vLLM release")
    group.addoption("--target", choices=("mock", "real"), default="mock", help="what is tested (default: mock)")
    group.addoption(
        "--target-url",
        help="the server, http://HOST:PORT (default: VLLM_CONFORMANCE_URL; else what answers on port "
        "8000 (mock) or 8001 (real); else a mock, or a managed real server of --vllm-version, is started)",
    )
    group.addoption("--vllm-version", help="hold the server to this release (default: what /version says)")
    group.addoption("--record", action="store_true", help="write what a real server answers to the truth file")
    group.addoption(
        "--record-note", action="append", default=[], metavar="KEY=VALUE", help="a fact for the recording's provenance"
    )
    group.addoption(
        "--master-address",
        default="127.0.0.1",
        help="the address of this machine that the server can reach, such as host.docker.internal for a server in a "
        "container (default: 127.0.0.1)",
    )
    group.addoption(
        "--list-cases", action="store_true", help="print id, level, releases, sentence, source; run nothing"
    )


def _options(config: pytest.Config) -> Options:
    return Options(
        target=config.getoption("--target"),
        url=config.getoption("--target-url") or os.environ.get("VLLM_CONFORMANCE_URL"),
        release=config.getoption("--vllm-version"),
        record=config.getoption("--record"),
        trainer_address=config.getoption("--master-address"),
        notes=tuple(config.getoption("--record-note")),
    )


def pytest_cmdline_main(config: pytest.Config) -> int | None:
    """``--list-cases`` ends here, with 0."""
    if not config.getoption("--list-cases"):
        return None
    sys.stdout.write(listing())
    return 0


def pytest_sessionstart(session: pytest.Session) -> None:
    """Finds or starts the target before anything is collected, since the release decides which cases there are."""
    stack = session.config.stash[_STACK] = ExitStack()
    session.config.stash[_SUITE] = open_suite(_options(session.config), stack)


def pytest_report_header(config: pytest.Config) -> str | None:
    """Says which server is tested."""
    suite = config.stash.get(_SUITE, None)
    return suite.header if suite else None


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test a case of the module's ``CASES``."""
    if "case" in metafunc.fixturenames and "suite" in metafunc.fixturenames:
        cases = metafunc.config.stash[_SUITE].cases_of(metafunc.module.CASES)
        metafunc.parametrize("case", cases, ids=[case.id for case in cases])


@pytest.hookimpl(trylast=True)  # after -k and the like have chosen
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Cases that share a server follow each other, those that need one without a group first."""
    suite = config.stash[_SUITE]
    # A module without a case of this release would show as a skipped test.
    items[:] = [
        item for item in items if _case_of(item) is not None or "suite" not in getattr(item, "fixturenames", ())
    ]
    cases = {item.nodeid: case for item in items if (case := _case_of(item)) is not None}
    if config.getoption("--collect-only"):
        return
    rank = {case.id: number for number, case in enumerate(suite.plan(list(cases.values())))}
    if suite.chosen.servers.starts_its_own and config.pluginmanager.hasplugin("timeout"):
        for item in items:
            # Whichever case comes first on a server also waits for its start.
            item.add_marker(pytest.mark.timeout(CASE_SECONDS))
    items.sort(key=lambda item: rank[cases[item.nodeid].id] if item.nodeid in cases else len(rank))


def _case_of(item: pytest.Item) -> Case | None:
    parameters = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
    case = parameters.get("case")
    return case if isinstance(case, Case) else None


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A managed server whose list of what is not testable has changed unseen fails the run."""
    suite = session.config.stash.get(_SUITE, None)
    if suite is not None and suite.unseen() and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Counts by level, what only warned, and where a recording went."""
    suite = config.stash.get(_SUITE, None)
    if suite is None or not suite.results:
        return
    terminalreporter.section("conformance")
    terminalreporter.line(suite.header)
    for line in suite.summary():
        terminalreporter.line(line)
    if suite.recording:
        path = suite.save_recording(_options(config).notes)
        terminalreporter.line(f"recorded: {path}" if path else "nothing was recorded")


def pytest_unconfigure(config: pytest.Config) -> None:
    """Ends the servers that were started here."""
    stack = config.stash.get(_STACK, None)
    if stack is not None:
        stack.close()


@pytest.fixture(scope="session")
def suite(request: pytest.FixtureRequest) -> Suite:
    """The running suite."""
    return request.config.stash[_SUITE]
