"""What each extra brings, shown by installing the built wheel into an empty environment.

Needs pip and its index; the environments are thrown away.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from email.parser import Parser
from pathlib import Path

import pytest
import requests

from tests.integration.test_mock_command import free_port

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

PROJECT = Path(__file__).parents[2]
HEAVY = ("torch", "vllm")


class Environment:
    """An empty virtual environment with one set of extras."""

    def __init__(self, folder: Path, wheel: Path, extra: str) -> None:
        run(sys.executable, "-m", "venv", "--without-pip", str(folder))
        self.python = folder / "bin" / "python"
        pip(
            "--python", str(self.python), "install", "--constraint", str(PROJECT / "constraints.txt"), f"{wheel}{extra}"
        )

    def installed(self) -> set[str]:
        listing = pip("--python", str(self.python), "list", "--format=json")
        return {str(entry["name"]).lower() for entry in json.loads(listing)}

    def run(self, *arguments: str, folder: Path) -> str:
        return run(str(self.python), *arguments, folder=folder)

    def script(self, name: str) -> str:
        return str(self.python.parent / name)


def run(*arguments: str, folder: Path | None = None) -> str:
    """Run a command outside the project, so that only what is installed can be imported."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(
        arguments, capture_output=True, text=True, cwd=folder, env=environment, timeout=300, check=False
    )
    assert done.returncode == 0, f"{arguments}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def pip(*arguments: str) -> str:
    return run(sys.executable, "-m", "pip", "--disable-pip-version-check", *arguments)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    pip("wheel", "--no-deps", "--wheel-dir", str(folder), str(PROJECT))
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture
def make(tmp_path: Path, wheel: Path) -> Callable[[str], Environment]:
    return lambda extra: Environment(tmp_path / "env", wheel, extra)


def test_the_wheel_holds_the_packages_their_types_and_the_truth(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert {f"{package}/py.typed" for package in ("mock_vllm", "vime_sync", "conformance")} <= set(names)
    assert "conformance/truth/0.21.0.json" in names
    assert "conformance/conftest.py" in names
    assert not [name for name in names if name.startswith("tests/")]


def test_the_base_install_is_the_client_and_requests(make: Callable[[str], Environment], tmp_path: Path) -> None:
    environment = make("")
    expected = {"vllm-weight-sync-conformance", "requests", "urllib3", "idna", "certifi", "charset-normalizer"}
    assert environment.installed() == expected
    shown = environment.run("-W", "error", "-c", "import vime_sync; print(vime_sync.__version__)", folder=tmp_path)
    assert shown == "0.1.0\n"
    assert "push" in run(environment.script("vime-sync"), "--help")


def test_the_mock_needs_no_torch_and_is_healthy_at_once(make: Callable[[str], Environment]) -> None:
    environment = make("[mock]")
    assert {"fastapi", "uvicorn"} <= environment.installed()
    assert not environment.installed() & {*HEAVY, "pytest", "hypothesis", "numpy"}
    port = free_port()
    seconds = min(seconds_to_healthy(environment, port) for _ in range(2))
    assert seconds < 1.5, f"healthy after {seconds:.2f} s"


def seconds_to_healthy(environment: Environment, port: int) -> float:
    """Start the command and return how long it took to answer; the second start has compiled files."""
    began = time.monotonic()
    process = subprocess.Popen([environment.script("mock-vllm"), "serve", "tiny", "--port", str(port), "--quiet"])
    try:
        while time.monotonic() - began < 20:
            try:
                requests.get(f"http://127.0.0.1:{port}/health", timeout=1)
                return time.monotonic() - began
            except requests.ConnectionError:
                time.sleep(0.01)
        raise AssertionError("not healthy within 20 s")
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0


def test_the_suite_runs_from_an_installation(make: Callable[[str], Environment], tmp_path: Path) -> None:
    environment = make("[conformance]")
    assert not environment.installed() & set(HEAVY)
    suite = environment.run("-c", "import conformance; print(conformance.__path__[0])", folder=tmp_path).strip()
    shown = environment.run("-m", "pytest", suite, "--target=mock", "-q", "-k", "START-", folder=tmp_path)
    assert " passed" in shown
    assert "failed" not in shown


def test_transfer_brings_torch(make: Callable[[str], Environment], tmp_path: Path) -> None:
    environment = make("[transfer]")
    assert {"torch", "safetensors"} <= environment.installed()
    code = "import torch; from vime_sync import push; print(torch.zeros(2).sum().item())"
    assert environment.run("-c", code, folder=tmp_path) == "0.0\n"


def test_gpu_asks_for_vllm(wheel: Path, tmp_path: Path) -> None:
    """vLLM itself is several gigabytes: that the extra resolves is shown without downloading it."""
    with zipfile.ZipFile(wheel) as archive:
        (metadata,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        requirements = Parser().parsestr(archive.read(metadata).decode()).get_all("Requires-Dist") or []
    assert [line for line in requirements if line.endswith('extra == "gpu"')] == ['vllm>=0.21.0; extra == "gpu"']
    report = tmp_path / "report.json"
    pip("install", "--dry-run", "--ignore-installed", "--report", str(report), f"{wheel}[gpu]")
    planned = {entry["metadata"]["name"].lower() for entry in json.loads(report.read_text())["install"]}
    assert {"vllm", "requests", "torch"} <= planned
