"""`vime_sync` against mocks of the two ends: the same push, whatever the release wants to hear."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

import vime_sync
from mock_vllm import MockServer, Settings
from tests.support.arrays import Array, safetensors_file
from vime_sync import Timeouts

pytestmark = pytest.mark.integration

RELEASES = ("0.21.0", "0.32.0")
LIMITS = Timeouts(total=30.0, grace=10.0)
ORDINARY = [
    Array("matrix", "bfloat16", (300, 7), seed=2),
    Array("odd", "uint8", (7,), seed=3),
    Array("wide", "float32", (50, 50), seed=5),
    Array("long", "int64", (3,), seed=7),
    Array("empty", "float16", (0, 4)),
]
SCALAR = Array("scalar", "float32", (), seed=1)
MASK = Array("mask", "bool", (5,), content=b"\1\0\1\1\0")


def serving(version: str, **settings: Any) -> MockServer:
    settings = {"model": "tiny", "port": 0, "receiver": "tcp", "transfer_timeout": 5.0} | settings
    return MockServer(Settings(vllm_version=version, **settings))


@pytest.fixture(params=RELEASES)
def server(request: pytest.FixtureRequest) -> Iterator[MockServer]:
    with serving(request.param) as server:
        yield server


def digests(arrays: list[Array]) -> dict[str, str]:
    return {array.name: hashlib.sha256(array.read()).hexdigest() for array in arrays}


def held(url: str) -> list[dict[str, str]]:
    ranks = requests.get(f"{url}/mock/weights", timeout=10).json()["ranks"]
    return [{name: record["sha256"] for name, record in rank["weights"].items()} for rank in ranks]


def state(url: str) -> Any:
    return requests.get(f"{url}/mock/state", timeout=10).json()


@pytest.mark.parametrize("bucket_bytes", [1, 6000, 1 << 28])
@pytest.mark.parametrize("packed", [True, False, None])
def test_every_byte_arrives_and_one_round_follows_another(
    server: MockServer, packed: bool | None, bucket_bytes: int
) -> None:
    other = [Array(array.name, array.dtype, array.shape, seed=99) for array in ORDINARY]
    for arrays in (ORDINARY, other, ORDINARY):
        report = vime_sync.push(
            arrays, server.url, packed=packed, bucket_bytes=bucket_bytes, packed_buffer_bytes=3000, timeouts=LIMITS
        )
        assert (report.verified, report.packed, report.form_reason) == (True, packed is not False, None)
        assert held(server.url) == [digests(arrays)]


@pytest.mark.parametrize("packed", [True, False])
def test_every_worker_of_0_32_receives(packed: bool) -> None:
    with serving("0.32.0", tensor_parallel_size=2) as server:
        report = vime_sync.push(ORDINARY, server.url, packed=packed, packed_buffer_bytes=3000, timeouts=LIMITS)
        assert (report.world_size, report.verified) == (2, True)
        assert held(server.url) == [digests(ORDINARY)] * 2


def test_scalars_and_masks_are_packed_into_0_32_and_refused_plain() -> None:
    arrays = [SCALAR, MASK, *ORDINARY]
    with serving("0.32.0") as server:
        report = vime_sync.push(arrays, server.url, timeouts=LIMITS)
        assert (report.verified, report.packed, report.buckets) == (True, True, 1)
        assert held(server.url) == [digests(arrays)]
        with pytest.raises(vime_sync.UnsupportedTensor, match="mask"):
            vime_sync.push(arrays, server.url, packed=False, timeouts=LIMITS)
        assert state(server.url)["paused"] is False


def test_a_weight_version_is_set_in_0_32_and_refused_in_0_21(tmp_path: Path) -> None:
    path = safetensors_file(tmp_path / "x.safetensors", *ORDINARY)
    for version, code, text in (("0.32.0", 0, "the engine calls these weights step-7"), ("0.21.0", 5, "0.27.0")):
        with serving(version) as server:
            call = [sys.executable, "-m", "vime_sync", "push", str(path), "--engine", server.url]
            done = subprocess.run(
                [*call, "--weight-version", "step-7"], capture_output=True, text=True, timeout=60, check=False
            )
            assert done.returncode == code, done.stderr
            assert text in done.stdout + done.stderr
            if code == 0:
                shown = requests.get(f"{server.url}/weight_info", timeout=10).json()
                assert shown == {"weight_version": "step-7"}


@pytest.mark.parametrize("version", RELEASES)
@pytest.mark.parametrize("packed", [True, False])
def test_after_a_failed_update_the_next_push_is_whole(tmp_path: Path, version: str, packed: bool) -> None:
    folder = tmp_path / "served"
    folder.mkdir()
    good = Array("lm_head.weight", shape=(8, 4), seed=1)
    safetensors_file(folder / "model.safetensors", good)
    (folder / "config.json").write_text(json.dumps({"architectures": ["Qwen3ForCausalLM"]}))
    with serving(version, model=str(folder)) as server:
        with pytest.raises(vime_sync.EngineError) as caught:
            vime_sync.push([Array("lm_head.weight", shape=(4, 8))], server.url, packed=packed, timeouts=LIMITS)
        assert not hasattr(caught.value, "__notes__")
        assert "push again" in (caught.value.next_step or "")
        after = state(server.url)
        assert (after["paused"], after["session"]["active"]) == (True, False)
        assert vime_sync.push([good], server.url, packed=packed, timeouts=LIMITS).verified is True
        assert held(server.url) == [digests([good])]
        assert state(server.url)["paused"] is False
