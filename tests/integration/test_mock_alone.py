"""The mock agrees with the recorded truth also where it could not have read it."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import requests

from conformance import run
from conformance.tiny_model.files import write
from tests.integration.test_mock_command import free_port

pytestmark = pytest.mark.integration

PROJECT = Path(__file__).parents[2]
GUARD = """
import runpy, sys

def refuse(event, arguments):
    if event == "open" and "truth" in str(arguments[0]):
        raise PermissionError(f"the mock reached for {arguments[0]}")

sys.addaudithook(refuse)
sys.modules["conformance"] = None
sys.argv = ["mock-vllm", *sys.argv[1:]]
runpy.run_module("mock_vllm", run_name="__main__")
"""


@contextmanager
def alone(folder: Path, release: str) -> Iterator[str]:
    """Serve from a copy of the package, in a process that can neither import the suite nor open its truth."""
    shutil.copytree(PROJECT / "mock_vllm", folder / "mock_vllm", ignore=shutil.ignore_patterns("__pycache__"))
    write(folder / "model")
    port = free_port()
    options = ["--vllm-version", release, "--port", str(port), "--max-model-len", "256", "--quiet"]
    process = subprocess.Popen(
        [sys.executable, "-c", GUARD, "serve", str(folder / "model"), *options],
        cwd=folder,
        stderr=subprocess.PIPE,
        text=True,
    )
    url = f"http://127.0.0.1:{port}"
    try:
        deadline = time.monotonic() + 20
        while True:
            try:
                requests.get(f"{url}/health", timeout=1)
                break
            except requests.ConnectionError:
                assert process.poll() is None, process.communicate()
                assert time.monotonic() < deadline
                time.sleep(0.02)
        yield url
    finally:
        process.kill()
        process.communicate(timeout=10)


@pytest.mark.parametrize("release", ["0.21.0", "0.32.0"])
def test_the_mock_agrees_without_the_truth(tmp_path: Path, release: str) -> None:
    with alone(tmp_path, release) as url:
        results = run(url)
    wrong = {case_id: result.text for case_id, result in results.items() if result.verdict == "differ"}
    assert wrong == {}
    agreed = [result for result in results.values() if result.verdict == "agree"]
    assert len(agreed) > 340


def test_the_guard_guards(tmp_path: Path) -> None:
    truth = PROJECT / "conformance" / "truth" / "0.21.0.json"
    code = GUARD.replace('runpy.run_module("mock_vllm", run_name="__main__")', f"open({str(truth)!r})")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=20, check=False)
    assert "PermissionError: the mock reached for" in done.stderr
