"""Runs the suite against one broken server in a process of its own; prints the ids that turned red as JSON.

python -m tests.broken_servers.run_one NAME MODEL_DIRECTORY
"""

from __future__ import annotations

import json
import logging
import sys
import time
from contextlib import ExitStack, suppress

import pytest

from conformance import case_run, run
from conformance.case import USUAL
from conformance.cases import all_cases
from conformance.choosing import Options
from conformance.runner import CaseResult
from conformance.suite import open_suite
from mock_vllm import Settings
from tests.broken_servers.broken_server import BrokenServer
from tests.broken_servers.everything import ALL_BROKEN

TRANSFER_SECONDS = 3.0
MAX_MODEL_LEN = 256
CLOSE_SECONDS = 0.2
"""A server on the loopback that closes a connection does so at once; many of these never do."""


def main(name: str, model: str) -> list[str]:
    """Return the ids of the red cases, sorted."""
    logging.disable(logging.CRITICAL)
    (broken,) = [server for server in ALL_BROKEN if server.name == name]
    began = time.monotonic()
    with pytest.MonkeyPatch.context() as patching:
        patching.setattr(case_run, "EXPECTED_CLOSE_SECONDS", CLOSE_SECONDS)
        red = red_of_launched(broken, patching) if broken.launched else red_of_served(broken, model, patching)
    print(f"{time.monotonic() - began:.1f} s", file=sys.stderr)
    return sorted(red)


def red_of_served(broken: BrokenServer, model: str, patching: pytest.MonkeyPatch) -> list[str]:
    """Serve it, and run every case that a server at an address allows."""
    settings = Settings(
        model=model,
        port=0,
        transfer_timeout=TRANSFER_SECONDS,
        vllm_version=broken.release,
        max_model_len=MAX_MODEL_LEN,
        stay_when_dead=True,
    )
    with broken.serving(settings, patching) as url:
        red = red_ids(run(url))
        # Many of these run at once, so that a case may fail for want of time: what is red must be red twice.
        return red_ids(run(url, red)) if red else red


def red_ids(results: dict[str, CaseResult]) -> list[str]:
    """Return the ids of the cases that differ."""
    return [case_id for case_id, result in results.items() if result.verdict == "differ"]


def red_of_launched(broken: BrokenServer, patching: pytest.MonkeyPatch) -> list[str]:
    """Let the suite start it, for the cases that need a server of their own."""
    assert broken.patch is not None
    broken.patch(patching)
    with ExitStack() as stack:
        suite = open_suite(Options("mock", None, broken.release, False, "127.0.0.1"), stack)
        own = [case for case in suite.cases_of(all_cases()) if case.launch != USUAL or case.spoils]
        for case in suite.plan(own):
            with suppress(pytest.fail.Exception, pytest.skip.Exception):
                suite.check(case)
        return [result.case.id for result in suite.results if result.verdict == "differ"]


if __name__ == "__main__":
    print(json.dumps(main(*sys.argv[1:])))
