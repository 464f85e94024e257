"""`vime_sync` against the mock, end to end: every byte arrives."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import requests

import vime_sync
from mock_vllm import MockServer, Settings
from tests.support.arrays import ASSORTED, Array
from vime_sync import SessionState, Timeouts

pytestmark = pytest.mark.integration

LIMITS = Timeouts(total=20.0, grace=5.0)


def digests(arrays: list[Array]) -> dict[str, tuple[str, list[int], int, str]]:
    return {
        array.name: (array.dtype, list(array.shape), array.nbytes, hashlib.sha256(array.read()).hexdigest())
        for array in arrays
    }


def held(url: str) -> list[dict[str, tuple[str, list[int], int, str]]]:
    found = requests.get(f"{url}/mock/weights", timeout=10).json()
    return [
        {
            name: (record["dtype"], record["shape"], record["nbytes"], record["sha256"])
            for name, record in rank["weights"].items()
        }
        for rank in found["ranks"]
    ]


def state(url: str) -> Any:
    return requests.get(f"{url}/mock/state", timeout=10).json()


def command(*arguments: str, timeout: float = 60.0) -> subprocess.CompletedProcess[str]:
    call = [sys.executable, "-m", "vime_sync", *arguments]
    return subprocess.run(call, capture_output=True, text=True, timeout=timeout, check=False)


@pytest.fixture
def server() -> Iterator[MockServer]:
    with MockServer(Settings(model="tiny", port=0, receiver="tcp", transfer_timeout=5.0)) as server:
        yield server


@pytest.mark.parametrize("bucket_bytes", [1, 1000, 1 << 28])
@pytest.mark.parametrize("packed", [True, False])
def test_every_byte_arrives(server: MockServer, packed: bool, bucket_bytes: int) -> None:
    report = vime_sync.push(
        ASSORTED, server.url, packed=packed, bucket_bytes=bucket_bytes, packed_buffer_bytes=3000, timeouts=LIMITS
    )
    assert report.verified is True
    assert held(server.url) == [digests(ASSORTED)]
    after = state(server.url)
    assert (after["paused"], after["session"]["active"], after["session"]["failed"]) == (False, False, False)


@pytest.mark.parametrize("packed", [True, False])
def test_every_worker_receives(packed: bool) -> None:
    settings = Settings(model="tiny", port=0, tensor_parallel_size=2, data_parallel_size=2, transfer_timeout=5.0)
    with MockServer(settings) as server:
        report = vime_sync.push(ASSORTED, server.url, packed=packed, bucket_bytes=5000, timeouts=LIMITS)
        assert (report.world_size, report.verified) == (4, True)
        assert held(server.url) == [digests(ASSORTED)] * 4


def test_one_engine_after_another_round(server: MockServer) -> None:
    first = [Array("w", shape=(1000,), seed=1)]
    second = [Array("w", shape=(1000,), seed=2)]
    for arrays in (first, second, first):
        assert vime_sync.push(arrays, server.url, timeouts=LIMITS).verified is True
        assert held(server.url) == [digests(arrays)]


def test_torch_tensors(server: MockServer) -> None:
    torch = pytest.importorskip("torch")
    tensors = {
        "turned": torch.arange(12, dtype=torch.float32).reshape(3, 4).t(),
        "half": torch.ones(5, dtype=torch.bfloat16),
        "eight": torch.ones(3).to(torch.float8_e4m3fn),
        "scalar": torch.tensor(2.5),
    }
    assert vime_sync.push(tensors, server.url, timeouts=LIMITS).verified is True
    expected = hashlib.sha256(tensors["turned"].contiguous().numpy().tobytes()).hexdigest()
    assert held(server.url)[0]["turned"] == ("float32", [4, 3], 48, expected)


def test_status_of_an_engine_and_of_a_busy_one(server: MockServer) -> None:
    done = command("status", "--engine", server.url)
    assert done.returncode == 0, done.stderr
    assert "vLLM 0.21.0 (mock" in done.stdout
    found = json.loads(command("status", "--engine", server.url, "--json").stdout)
    assert (found["world_size"], found["paused"], found["busy"], found["models"]) == (1, False, False, ["tiny"])
    assert found["session"]["active"] is False


def test_the_client_s_session_against_the_mock(server: MockServer) -> None:
    client = vime_sync.EngineClient(server.url, LIMITS)
    session = vime_sync.WeightUpdateSession(client)
    with pytest.raises(vime_sync.InvalidInfo), session:
        session.update({"names": ["w"], "dtype_names": ["float32"], "shapes": []})
    assert session.state is SessionState.CLOSED_EARLY
    assert state(server.url)["session"]["active"] is False
    client.close()
