"""How a managed server starts, fails and ends, shown with a stand-in for vLLM; nothing of it may stay behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import requests

from conformance.real import Environment, RealServerError, installed, serving
from conformance.real.cli import main
from conformance.real.errors import ServerDeadlineError, ServerDiedError
from conformance.real.launch import free_port

pytestmark = pytest.mark.integration

STAND_IN = Path(__file__).parents[1] / "support" / "stand_in_server.py"
VERSION = "9.9.9"
PROCESSES = 3
"""The stand-in, its stubborn child and its daemon."""


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Environment:
    """An environment whose Python runs the stand-in, whatever it is asked to run."""
    monkeypatch.setenv("CONFORMANCE_REAL_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("STAND_IN_PIDS", str(tmp_path / "pids"))
    made = Environment(VERSION, tmp_path / "home" / VERSION)
    made.python.parent.mkdir(parents=True)
    made.python.write_text(f'#!/bin/sh\nexec {sys.executable} {STAND_IN} "$@"\n')
    made.python.chmod(0o755)
    (made.folder / "provenance.json").write_text(json.dumps({"bytes": 1}))
    assert installed(VERSION) == made
    return made


def pids(tmp_path: Path) -> list[int]:
    path = tmp_path / "pids"
    return [int(line) for line in path.read_text().split()] if path.exists() else []


def alive(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False


def all_started(tmp_path: Path) -> list[int]:
    """The stand-in's processes, once all of them are there."""
    end = time.monotonic() + 10
    while len(pids(tmp_path)) < PROCESSES:
        assert time.monotonic() < end, "the stand-in did not start its processes"
        time.sleep(0.01)
    return pids(tmp_path)


def all_gone(seen: list[int], seconds: float = 5.0) -> bool:
    end = time.monotonic() + seconds
    while any(alive(pid) for pid in seen):
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def test_a_server_is_served_told_and_ended_with_all_its_processes(environment: Environment, tmp_path: Path) -> None:
    told: list[float] = []
    with serving(environment, model=tmp_path, flags=["--seed", "7"], deadline=20, waiting=told.append) as server:
        seen = all_started(tmp_path)
        assert requests.get(f"{server.url}/health", timeout=5).status_code == 200
        assert server.alive()
        assert server.pid == seen[0]
        assert any("--seed 7" in line for line in server.tail())
        first = server.log.read_text().splitlines()[0]
        assert f"--model {tmp_path} --served-model-name {tmp_path.name} " in first
        assert first.startswith("stand-in: -m vllm.entrypoints.openai.api_server --host 127.0.0.1 --port ")
    assert not any(alive(pid) for pid in seen)
    assert not server.alive()
    assert server.log.exists()
    assert told == sorted(told)


def test_what_is_raised_inside_goes_through_and_the_server_is_ended(environment: Environment, tmp_path: Path) -> None:
    def fail_while_serving() -> None:
        with serving(environment, model=tmp_path, deadline=20):
            all_started(tmp_path)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_while_serving()
    assert not any(alive(pid) for pid in pids(tmp_path))


def test_a_server_that_ends_by_itself_takes_its_processes_with_it(environment: Environment, tmp_path: Path) -> None:
    with serving(environment, model=tmp_path, deadline=20) as server:
        seen = all_started(tmp_path)
        requests.get(f"{server.url}/stop", timeout=5)
        assert server.guarded.ended(10) == 3
        assert not server.alive()
        assert all_gone(seen)


def test_death_at_the_start_is_told_at_once_with_the_logs_end(
    environment: Environment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STAND_IN", "die")
    began = time.monotonic()
    with pytest.raises(ServerDiedError) as seen, serving(environment, model=tmp_path, deadline=60):
        pytest.fail("it never was healthy")
    assert time.monotonic() - began < 10
    assert seen.value.status == 7
    assert seen.value.tail[-1] == "RuntimeError: no model here"
    assert str(seen.value).startswith("the server ended with exit status 7 after ")
    assert str(seen.value.log) in str(seen.value)


def test_the_deadline_of_a_server_that_never_answers(
    environment: Environment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STAND_IN", "hang")
    with pytest.raises(ServerDeadlineError) as seen, serving(environment, model=tmp_path, deadline=1.0):
        pytest.fail("it never was healthy")
    assert "within 1 s, and was stopped" in str(seen.value)
    assert len(all_started(tmp_path)) == PROCESSES
    assert not any(alive(pid) for pid in pids(tmp_path))


def test_an_environment_without_a_python_is_named(tmp_path: Path) -> None:
    with (
        pytest.raises(RealServerError, match=r"vLLM 1\.2\.3 is not installed"),
        serving(Environment("1.2.3", tmp_path / "1.2.3"), model=tmp_path),
    ):
        pytest.fail("there is nothing to start")


@pytest.mark.parametrize(
    ("number", "status"),
    [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -9)],
    ids=["int", "term", "kill"],
)
@pytest.mark.parametrize("does", ["serve", "hang"])
def test_the_command_leaves_no_process_however_it_ends(
    environment: Environment, tmp_path: Path, number: signal.Signals, status: int, does: str
) -> None:
    command = subprocess.Popen(
        [sys.executable, "-m", "conformance.real", "serve", VERSION, "--", "--seed", "7"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "STAND_IN": does},
    )
    with command:
        seen = all_started(tmp_path)
        if does == "serve":
            assert command.stdout is not None
            assert any(line.startswith("http://127.0.0.1:") for line in command.stdout)
        command.send_signal(number)
        _, errors = command.communicate(timeout=20)
    assert command.returncode == status, errors
    assert "Traceback" not in errors
    assert all_gone(seen, 15.0)


def test_the_command_says_what_it_serves_and_when_it_has_ended_by_itself(
    environment: Environment, tmp_path: Path
) -> None:
    port = free_port()
    with subprocess.Popen(
        [
            sys.executable,
            "-m",
            "conformance.real",
            "serve",
            VERSION,
            "--port",
            str(port),
            "--tensor-parallel-size",
            "2",
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as command:
        assert command.stdout is not None
        while command.stdout.readline().strip() != f"http://127.0.0.1:{port}":
            assert command.poll() is None
        requests.get(f"http://127.0.0.1:{port}/stop", timeout=5)
        _, errors = command.communicate(timeout=20)
    assert command.returncode == 1
    assert "the server ended by itself, status 3:" in errors
    assert "--tensor-parallel-size 2" in errors
    assert all_gone(pids(tmp_path))


def test_the_log_can_be_shown_as_it_grows(environment: Environment, tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "conformance.real", "serve", VERSION, "--show-log", "--", "--seed", "7"],
        stdout=subprocess.PIPE,
        text=True,
    ) as command:
        assert command.stdout is not None
        shown = [command.stdout.readline()]
        while not shown[-1].startswith("http://"):
            assert command.poll() is None
            shown.append(command.stdout.readline())
        requests.get(f"{shown[-1].strip()}/health?mine", timeout=5)
        while "/health?mine" not in shown[-1]:
            assert command.poll() is None
            shown.append(command.stdout.readline())
        command.terminate()
        assert command.wait(20) == 143
    assert any(line.startswith("stand-in: -m vllm") and "--seed 7" in line for line in shown)


@pytest.mark.parametrize("text", ["0.21", "newest", "../../etc"])
def test_a_bad_version_is_an_error_of_usage(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as seen:
        main(["serve", text])
    assert seen.value.code == 2
    assert f"{text!r} is no vLLM release: three numbers are wanted, such as 0.21.0" in capsys.readouterr().err


def test_a_release_that_is_not_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CONFORMANCE_REAL_HOME", str(tmp_path))
    assert main(["serve", "0.21.0"]) == 1
    assert main(["provenance", "0.21.0"]) == 1
    hint = "run: python -m conformance.real install 0.21.0"
    line = f"conformance.real: vLLM 0.21.0 is not installed in {tmp_path}; {hint}\n"
    assert capsys.readouterr().err == line * 2
