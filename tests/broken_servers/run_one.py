"""Runs the suite against one broken server in a process of its own; prints the ids that turned red as JSON.

python -m tests.broken_servers.run_one NAME MODEL_DIRECTORY
"""

from __future__ import annotations

import json
import logging
import sys
import time

import pytest

from conformance import case_run, run
from mock_vllm import Settings
from tests.broken_servers.everything import ALL_BROKEN

TRANSFER_SECONDS = 3.0
MAX_MODEL_LEN = 256
CLOSE_SECONDS = 0.2
"""A server on the loopback that closes a connection does so at once; many of these never do."""


def main(name: str, model: str) -> list[str]:
    """Return the ids of the red cases, sorted."""
    logging.disable(logging.CRITICAL)
    (broken,) = [server for server in ALL_BROKEN if server.name == name]
    settings = Settings(
        model=model, port=0, transfer_timeout=TRANSFER_SECONDS, vllm_version=broken.release, max_model_len=MAX_MODEL_LEN
    )
    began = time.monotonic()
    with pytest.MonkeyPatch.context() as patching, broken.serving(settings, patching) as url:
        patching.setattr(case_run, "EXPECTED_CLOSE_SECONDS", CLOSE_SECONDS)
        results = run(url)
    print(f"{time.monotonic() - began:.1f} s", file=sys.stderr)
    return sorted(case_id for case_id, result in results.items() if result.verdict == "differ")


if __name__ == "__main__":
    print(json.dumps(main(*sys.argv[1:])))
