"""`vime_sync` against engines and ways that are wrong: nothing of it may pass for success."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

import vime_sync
from mock_vllm import MockServer, Settings
from tests.support.arrays import ASSORTED, Array, safetensors_file
from tests.support.plane_tap import PlaneTap
from tests.support.raw_server import RawServer, answer
from vime_sync import Timeouts

pytestmark = pytest.mark.integration

LIMITS = Timeouts(total=20.0, grace=5.0)


def state(url: str) -> Any:
    return requests.get(f"{url}/mock/state", timeout=10).json()


def command(*arguments: str, timeout: float = 60.0) -> subprocess.CompletedProcess[str]:
    call = [sys.executable, "-m", "vime_sync", *arguments]
    return subprocess.run(call, capture_output=True, text=True, timeout=timeout, check=False)


@pytest.fixture
def server() -> Iterator[MockServer]:
    with MockServer(Settings(model="tiny", port=0, receiver="tcp", transfer_timeout=5.0)) as server:
        yield server


@pytest.mark.parametrize("packed", [True, False])
def test_one_flipped_bit_is_found_and_its_tensor_named(server: MockServer, packed: bool) -> None:
    arrays = [Array("first", shape=(100,)), Array("second", shape=(100,), seed=9), Array("third", shape=(100,))]
    # In the trainer's stream: a reply of 5 bytes, then headers of 17 before each frame; packed makes one frame of all.
    position = 5 + 17 + 400 + 123 if packed else 5 + 17 + 400 + 17 + 123
    with PlaneTap(position) as tap, pytest.raises(vime_sync.DigestMismatch, match="second") as caught:
        vime_sync.push(
            arrays,
            server.url,
            packed=packed,
            timeouts=LIMITS,
            master_address="127.0.0.1",
            master_port=tap.port,
            bind_address="127.0.0.2",
        )
    assert caught.value.names == ("second",)
    assert state(server.url)["paused"] is True


def test_a_flipped_bit_fails_the_command_too(server: MockServer, tmp_path: Path) -> None:
    path = safetensors_file(tmp_path / "x.safetensors", Array("only", shape=(1000,)))
    with PlaneTap(2000) as tap:
        place = ("--master-address", "127.0.0.1", "--master-port", str(tap.port), "--bind-address", "127.0.0.2")
        done = command("push", str(path), "--engine", server.url, "--timeout", "20", *place)
    assert done.returncode == 7
    assert "only" in done.stderr
    assert "verified" not in done.stdout


def test_an_engine_that_never_receives_is_no_success() -> None:
    with MockServer(Settings(model="tiny", port=0, receiver="none")) as server:
        began = time.monotonic()
        with pytest.raises(vime_sync.NeverJoined, match="announced success"):
            vime_sync.push(ASSORTED, server.url, timeouts=LIMITS)
        assert time.monotonic() - began < 10.0
        assert state(server.url)["paused"] is True


def test_an_update_that_is_announced_and_not_received_is_no_success(server: MockServer, tmp_path: Path) -> None:
    """Everything reaches the mock but `/update_weights`, which something in front of it answers with success."""

    def lying(sock: socket.socket, front: RawServer) -> None:
        while request := front.receive(sock):
            method, target, _ = request.split(b" ", 2)
            if target == b"/update_weights":
                sock.sendall(answer(b'{"message":"Weights updated"}'))
                continue
            body = request.partition(b"\r\n\r\n")[2]
            passed = requests.request(method.decode(), server.url + target.decode(), data=body, timeout=20)
            content_type = passed.headers.get("content-type", "text/plain")
            status = f"{passed.status_code} {passed.reason}"
            sock.sendall(answer(passed.content, status, content_type, extra=("x-mock-vllm: front",)))

    path = safetensors_file(tmp_path / "x.safetensors", *ASSORTED)
    with RawServer(lying) as front:
        with pytest.raises((vime_sync.EarlyAnswer, vime_sync.DigestMismatch)):
            vime_sync.push(path, front.url, timeouts=LIMITS)
        requests.post(f"{server.url}/mock/reset", timeout=10)
        done = command("push", str(path), "--engine", front.url, "--timeout", "20")
    assert done.returncode in (6, 7)
    assert len(done.stderr.splitlines()) == 1


@pytest.fixture
def checked(tmp_path: Path) -> Iterator[MockServer]:
    """A mock that serves a directory, and so checks names and shapes."""
    folder = tmp_path / "served"
    folder.mkdir()
    safetensors_file(folder / "model.safetensors", Array("lm_head.weight", shape=(8, 4)))
    (folder / "config.json").write_text(json.dumps({"architectures": ["Qwen3ForCausalLM"]}))
    with MockServer(Settings(model=str(folder), port=0, transfer_timeout=5.0)) as server:
        yield server


def test_a_refused_bucket_stops_the_push_with_the_engine_s_words(checked: MockServer) -> None:
    arrays = [Array("lm_head.weight", shape=(8, 4), seed=1), Array("no.such", shape=(4,))]
    began = time.monotonic()
    with pytest.raises(vime_sync.Refused, match="no.such|no module or parameter") as caught:
        vime_sync.push(arrays, checked.url, packed=False, bucket_bytes=1, timeouts=LIMITS)
    assert time.monotonic() - began < 10.0
    assert caught.value.bucket == 1
    assert (caught.value.route, caught.value.phase) == ("/update_weights", "update")
    assert "may mix old and new weights" in (caught.value.state or "")
    after = state(checked.url)
    assert (after["paused"], after["session"]["active"]) == (True, False)
    # The way out that the error names: push again.
    report = vime_sync.push([arrays[0]], checked.url, timeouts=LIMITS)
    assert report.verified is True
    assert state(checked.url)["paused"] is False


def test_a_session_that_somebody_left_open_is_told_apart(server: MockServer) -> None:
    requests.post(f"{server.url}/start_weight_update", json={}, timeout=10)
    with pytest.raises(vime_sync.OrderError) as caught:
        vime_sync.push(ASSORTED, server.url, timeouts=LIMITS)
    assert "POST /finish_weight_update" in caught.value.line()
    assert state(server.url)["session"]["active"] is True, "what this push did not open it must not close"


def test_a_trainer_that_the_engine_cannot_reach_ends_at_the_deadline(server: MockServer) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    began = time.monotonic()
    with pytest.raises((vime_sync.NeverJoined, vime_sync.Refused)) as caught:
        vime_sync.push(
            ASSORTED,
            server.url,
            timeouts=Timeouts(total=2.0, grace=1.0),
            master_address="127.0.0.3",
            master_port=port,
            bind_address="127.0.0.2",
        )
    assert time.monotonic() - began < 8.0
    assert "--master-address" in caught.value.line() or isinstance(caught.value, vime_sync.Refused)
