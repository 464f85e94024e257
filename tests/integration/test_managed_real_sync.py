"""Whole syncs into real servers of the two ends, by this project's sender and by vLLM's own trainer code.

Needs installed environments: ``python -m conformance.real install 0.32.0``. Each server takes about a minute to start.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import requests

from conformance import tiny_model
from conformance.real import Environment, RunningServer, installed, serving
from conformance.real.launch import ENVIRONMENT
from vime_sync import push

pytestmark = [pytest.mark.real, pytest.mark.timeout(480)]

RELEASES = tuple(os.environ.get("REAL_RELEASES", "0.21.0 0.32.0").split())
TRAINER = Path(__file__).parents[1] / "support" / "vllm_trainer.py"
# Below the largest tensor (81,920 bytes), and so that the checkpoint takes several buffers.
SMALL_BUFFER = 50_000


@dataclass
class Real:
    """A running server and the files of the two checkpoints."""

    environment: Environment
    server: RunningServer
    checkpoints: dict[str, Path]

    def ask(self, path: str, body: dict[str, Any] | None = None) -> Any:
        answer = requests.post(f"{self.server.url}{path}", json=body, timeout=60)
        assert answer.ok, f"{path}: {answer.status_code} {answer.text}"
        return answer.json() if answer.content else None

    def tokens(self) -> list[int]:
        """The 16 tokens that follow a fixed prompt, greedily."""
        body = {
            "model": "tiny",
            "prompt": [1, 2, 3, 4, 5],
            "max_tokens": 16,
            "temperature": 0,
            "ignore_eos": True,
            "return_token_ids": True,
        }
        tokens: list[int] = self.ask("/v1/completions", body)["choices"][0]["token_ids"]
        return tokens

    def received(self) -> list[dict[str, Any]]:
        """What the only worker handed to its loader since the last forget."""
        (worker,) = self.ask("/collective_rpc", {"method": "received_weights"})["results"]
        return list(worker)

    def forget(self) -> None:
        self.ask("/collective_rpc", {"method": "forget_received_weights"})


def expected(checkpoint: Path) -> dict[str, tuple[str, list[int], str]]:
    """Dtype, shape and sha256 of each tensor of a safetensors file."""
    safetensors = pytest.importorskip("safetensors")
    numpy = pytest.importorskip("safetensors.numpy")
    found = {}
    with safetensors.safe_open(checkpoint, "np") as file:
        for name, array in numpy.load_file(checkpoint).items():
            assert file.get_slice(name).get_dtype() == "F32"
            found[name] = ("float32", list(array.shape), hashlib.sha256(array.tobytes()).hexdigest())
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
        yield Real(environment, server, checkpoints)


Send = Callable[[Path], None]


@contextmanager
def vime_sync(real: Real, packed: bool) -> Iterator[Send]:
    """This project's client, in this process."""

    def send(checkpoint: Path) -> None:
        report = push(checkpoint, real.server.url, packed=packed, packed_buffer_bytes=SMALL_BUFFER)
        assert report.tensors == 25

    yield send


@contextmanager
def vllm(real: Real, packed: bool) -> Iterator[Send]:
    """vLLM's own trainer code, in a process of the managed environment."""
    command = [real.environment.python, TRAINER, real.server.url, "packed" if packed else "plain", str(SMALL_BUFFER)]
    environ = {**os.environ, **ENVIRONMENT, "WEIGHT_PLANE_TIMEOUT": "30"}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environ
    ) as trainer:
        assert trainer.stdin is not None
        assert trainer.stdout is not None
        assert trainer.stderr is not None
        try:
            # vLLM may print before; the end of the output says that it has died.
            if "ready\n" not in trainer.stdout:
                pytest.fail(trainer.stderr.read())

            def send(checkpoint: Path) -> None:
                real.ask("/pause")
                trainer.stdin.write(f"{checkpoint}\n")
                trainer.stdin.flush()
                if "sent\n" not in trainer.stdout:
                    pytest.fail(trainer.stderr.read())
                real.ask("/reset_prefix_cache")
                real.ask("/resume")

            yield send
        finally:
            trainer.kill()


@pytest.mark.parametrize("trainer", [vime_sync, vllm])
@pytest.mark.parametrize("packed", [False, True], ids=["plain", "packed"])
def test_a_sync_arrives_is_loaded_and_can_be_taken_back(
    real: Real, trainer: Callable[[Real, bool], AbstractContextManager[Send]], packed: bool
) -> None:
    first = real.tokens()
    with trainer(real, packed) as send:
        for checkpoint in ("B", "A"):
            real.forget()
            send(real.checkpoints[checkpoint])
            wanted = expected(real.checkpoints[checkpoint])
            received = real.received()
            assert len(received) == len(wanted)
            assert {one["name"]: (one["dtype"], one["shape"], one["sha256"]) for one in received} == wanted
            assert (real.tokens() == first) == (checkpoint == "A"), checkpoint
    assert real.server.alive()


def test_the_plugin_says_in_the_log_that_it_is_in_place(real: Real) -> None:
    assert "NCCL is replaced by the TCP plane" in real.server.log.read_text()
