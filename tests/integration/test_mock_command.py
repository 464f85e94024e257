"""`mock-vllm serve` as a user starts it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import requests

pytestmark = pytest.mark.integration


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as sock:
        return int(sock.getsockname()[1])


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "mock_vllm", *arguments]


@contextmanager
def serving(*arguments: str, **environment: str) -> Iterator[tuple[str, subprocess.Popen[str], float]]:
    """Run the command; yields its URL, its process, and the seconds until it was healthy."""
    port = free_port()
    began = time.monotonic()
    process = subprocess.Popen(
        command("serve", *arguments, "--port", str(port)),
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )
    url = f"http://127.0.0.1:{port}"
    try:
        while True:
            try:
                requests.get(f"{url}/health", timeout=1)
                break
            except requests.ConnectionError:
                assert process.poll() is None, process.communicate()
                assert time.monotonic() - began < 20
                time.sleep(0.02)
        yield url, process, time.monotonic() - began
    finally:
        process.kill()
        process.communicate(timeout=10)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_well(number: signal.Signals) -> None:
    with serving("tiny") as (_, process, _):
        process.send_signal(number)
        _, log = process.communicate(timeout=10)
    assert process.returncode == 0
    assert "a mock of vLLM 0.21.0 (not vLLM) at http://127.0.0.1:" in log
    assert "a bare name: any tensor is accepted" in log


def test_flags_of_vllm_are_accepted_and_named() -> None:
    with serving("tiny", "--enforce-eager", "--gpu-memory-utilization", "0.9", "--seed", "1") as (url, process, _):
        assert requests.get(f"{url}/version", timeout=5).json() == {"version": "0.21.0"}
        process.terminate()
        _, log = process.communicate(timeout=10)
    assert "ignored, the mock has no use for: --enforce-eager --gpu-memory-utilization 0.9 --seed 1" in log


def test_development_mode_can_be_off() -> None:
    with serving("tiny", VLLM_SERVER_DEV_MODE="0") as (url, _, _):
        assert requests.post(f"{url}/start_weight_update", json={}, timeout=5).status_code == 404


def test_a_strict_launch_is_vllms() -> None:
    with serving("tiny", "--strict-launch") as (url, _, _):
        assert requests.post(f"{url}/start_weight_update", json={}, timeout=5).status_code == 404
    with serving("tiny", "--strict-launch", VLLM_SERVER_DEV_MODE="1") as (url, _, _):
        answer = requests.post(f"{url}/start_weight_update", json={}, timeout=5)
        assert "Weight transfer not configured." in answer.text
    config = ("--weight-transfer-config", '{"backend":"nccl"}')
    with serving("tiny", "--strict-launch", *config, VLLM_SERVER_DEV_MODE="1") as (url, _, _):
        assert requests.post(f"{url}/start_weight_update", json={}, timeout=5).status_code == 200


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (
            ["tiny", "--vllm-version", "0.1.0"],
            "mock-vllm: --vllm-version: no profile of vLLM 0.1.0; there is one of: 0.21",
        ),
        ([], "mock-vllm: MODEL: is missing"),
        (
            ["tiny", "--vllm-verison", "0.32.0"],
            "mock-vllm: --vllm-verison: no such option; did you mean --vllm-version?",
        ),
        (["tiny", "--model", "other"], "mock-vllm: --model: other is not MODEL, tiny"),
        (["tiny", "--weight-transfer-config", "x"], "mock-vllm: --weight-transfer-config: is not JSON"),
        (["/no/such/folder"], "mock-vllm: MODEL: /no/such/folder is no directory"),
        (["tiny", "--port", "99999"], "mock-vllm: --port: 99999 is no port"),
        (["tiny", "--host", "192.0.2.1"], "mock-vllm: --port: cannot listen on 192.0.2.1"),
    ],
)
def test_one_line_says_why_it_cannot_start(arguments: list[str], text: str) -> None:
    done = subprocess.run(command("serve", *arguments), capture_output=True, text=True, timeout=20, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith(text)
    assert done.stderr.count("\n") == 1


def test_a_folder_without_weights_is_refused(tmp_path: Path) -> None:
    done = subprocess.run(command("serve", str(tmp_path)), capture_output=True, text=True, timeout=20, check=False)
    assert done.returncode == 2
    assert "has no *.safetensors file" in done.stderr


def test_a_port_that_is_taken_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = subprocess.run(
            command("serve", "tiny", "--port", port), capture_output=True, text=True, timeout=20, check=False
        )
    assert done.returncode == 2
    assert f"cannot listen on 127.0.0.1:{port}" in done.stderr


def test_help_names_the_exit_codes() -> None:
    done = subprocess.run(command("serve", "--help"), capture_output=True, text=True, timeout=20, check=True)
    assert "Exit codes: 0 stopped" in done.stdout
    assert "--transfer-timeout S" in done.stdout
