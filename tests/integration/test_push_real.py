"""`vime-sync push` into real servers: what the engine's workers received is what the files hold.

Needs installed environments: ``python -m conformance.real install 0.32.0``. Each server takes about a minute to start.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import requests

from conformance import tiny_model
from conformance.real import installed, serving
from tests.support.arrays import Array, raw_file

pytestmark = [pytest.mark.real, pytest.mark.timeout(480)]

RELEASES = tuple(os.environ.get("REAL_RELEASES", "0.21.0 0.32.0").split())
# Several calls, several buffers in one of them, and a tensor larger than a buffer (the largest has 81,920 bytes).
SIZES = ("--bucket-bytes", "300000", "--packed-buffer-bytes", "50000")


@dataclass
class Real:
    """A running server of `version`, and the files of the two checkpoints."""

    version: str
    url: str
    checkpoints: dict[str, Path]

    def ask(self, path: str, body: dict[str, Any] | None = None) -> Any:
        answer = requests.post(f"{self.url}{path}", json=body, timeout=60)
        assert answer.ok, f"{path}: {answer.status_code} {answer.text}"
        return answer.json()

    def get(self, path: str) -> Any:
        return requests.get(f"{self.url}{path}", timeout=60).json()

    def tokens(self) -> list[int]:
        """What follows a fixed prompt, greedily."""
        prompt = {"model": "tiny", "prompt": [1, 2, 3, 4, 5], "max_tokens": 16, "temperature": 0}
        body = prompt | {"ignore_eos": True, "return_token_ids": True}
        tokens: list[int] = self.ask("/v1/completions", body)["choices"][0]["token_ids"]
        return tokens

    def received(self) -> dict[str, tuple[str, list[int], str]]:
        """What the only worker handed to its loader since the last time, once each."""
        (worker,) = self.ask("/collective_rpc", {"method": "received_weights"})["results"]
        self.ask("/collective_rpc", {"method": "forget_received_weights"})
        found = {one["name"]: (one["dtype"], one["shape"], one["sha256"]) for one in worker}
        assert len(found) == len(worker)
        return found

    def push(self, checkpoint: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
        call = [sys.executable, "-m", "vime_sync", "push", str(checkpoint), "--engine", self.url, "--timeout", "60"]
        return subprocess.run([*call, *arguments], capture_output=True, text=True, timeout=120, check=False)


def in_file(path: Path) -> dict[str, tuple[str, list[int], str]]:
    """Dtype, shape and sha256 of each tensor of a file of float32, read without the package under test."""
    content = path.read_bytes()
    start = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:start])
    header.pop("__metadata__", None)
    found = {}
    for name, entry in header.items():
        assert entry["dtype"] == "F32"
        begin, end = (start + offset for offset in entry["data_offsets"])
        found[name] = ("float32", entry["shape"], hashlib.sha256(content[begin:end]).hexdigest())
    return found


@pytest.fixture(scope="module", params=RELEASES)
def real(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Real]:
    environment = installed(request.param)
    if environment is None:
        pytest.skip(f"vLLM {request.param} is not installed: python -m conformance.real install {request.param}")
    folder = tmp_path_factory.mktemp("checkpoints")
    models = {name: tiny_model.write(folder / name / "tiny", name) for name in ("A", "B")}
    checkpoints = {name: model / "model.safetensors" for name, model in models.items()}
    with serving(environment, model=models["A"], env={"WEIGHT_PLANE_TIMEOUT": "30"}) as server:
        yield Real(request.param, server.url, checkpoints)


@pytest.mark.parametrize("form", ["plain", "packed"])
def test_every_byte_arrives_is_loaded_and_can_be_taken_back(real: Real, form: str) -> None:
    first = real.tokens()
    real.received()
    for name in ("B", "A"):
        done = real.push(real.checkpoints[name], *SIZES, "--packed" if form == "packed" else "--no-packed")
        assert done.returncode == 0, done.stderr
        assert f"({form})" in done.stdout
        assert done.stdout.splitlines()[-1].startswith("sent, not verifiable here")
        assert real.received() == in_file(real.checkpoints[name])
        assert (real.tokens() == first) is (name == "A")
    assert real.get("/is_paused") == {"is_paused": False}


@pytest.mark.parametrize("form", ["--no-packed", "--packed"])
def test_after_a_failed_update_the_next_push_makes_the_engine_whole(real: Real, tmp_path: Path, form: str) -> None:
    first = real.tokens()
    header, data = _with_a_wrong_shape(real.checkpoints["B"])
    broken = raw_file(tmp_path / "broken.safetensors", header, data)
    done = real.push(broken, *SIZES, form)
    assert (done.returncode, done.stdout) == (5, ""), done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert "(update, bucket" in done.stderr
    assert "its session is closed and its model may mix old and new weights; next: push again" in done.stderr
    assert real.get("/is_paused") == {"is_paused": True}
    real.received()
    done = real.push(real.checkpoints["A"], *SIZES, form)
    assert done.returncode == 0, done.stderr
    assert real.received() == in_file(real.checkpoints["A"])
    assert real.tokens() == first


def test_a_weight_version_is_set_where_the_release_has_one(real: Real) -> None:
    done = real.push(real.checkpoints["A"], "--weight-version", "step-7")
    if real.version < "0.27":
        assert done.returncode == 5
        assert "keeps no weight version" in done.stderr
        return
    assert done.returncode == 0, done.stderr
    assert "the engine calls these weights step-7" in done.stdout
    assert real.get("/weight_info") == {"weight_version": "step-7"}


def test_a_scalar_and_an_unknown_name_are_told_in_one_line(real: Real, tmp_path: Path) -> None:
    path = tmp_path / "stray.safetensors"
    header = {"model.stray": {"dtype": "F32", "shape": [], "data_offsets": [0, 4]}}
    raw_file(path, header, bytes(Array("stray", shape=()).read()))
    done = real.push(path)
    if real.version < "0.25":  # ignored without a word
        assert done.returncode == 0, done.stderr
    else:
        assert (done.returncode, len(done.stderr.splitlines())) == (5, 1), done.stderr
        assert "stray" in done.stderr
    assert real.push(real.checkpoints["A"]).returncode == 0


def _with_a_wrong_shape(path: Path) -> tuple[dict[str, Any], bytes]:
    """The file's header and data with one tensor of the second layer in another shape of as many bytes."""
    content = path.read_bytes()
    start = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:start])
    entry = header["model.layers.1.self_attn.q_proj.weight"]
    entry["shape"] = [entry["shape"][0] * entry["shape"][1]]
    return header, content[start:]
