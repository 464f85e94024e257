"""A sync between two hosts: the mock in one network namespace, the trainer in another, a veth pair between them.

On one host every address reaches every process, and a mock that dials the wrong one, or a trainer that listens on the
wrong one, goes unnoticed. Here the two share nothing but the link, as a container and its host do.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conformance.tiny_model import write
from tests.support.network_namespaces import Host, NamespacesUnavailableError, NoAnswerError, linked_hosts

pytestmark = pytest.mark.integration

MOCK_ADDRESS = "10.214.0.2"
TRAINER_ADDRESS = "10.214.0.1"
PORT = 8000
ENGINE = f"http://{MOCK_ADDRESS}:{PORT}"
# What a container calls its host. The host itself does not know the name.
NAME = "host.docker.internal"
# An address of the trainer's host that no route of the mock's host leads to.
ELSEWHERE = "10.215.0.1"

# Of `vime-sync push --help`.
ENGINE_NOT_REACHED = 4
REFUSED = 5
TENSORS_DID_NOT_TRAVEL = 6


@pytest.fixture(scope="module")
def hosts() -> Iterator[tuple[Host, Host]]:
    """The trainer's host and the mock's host, linked; gone afterwards whatever happened."""
    try:
        with linked_hosts((TRAINER_ADDRESS, MOCK_ADDRESS), (ELSEWHERE, ""), ("", f"{TRAINER_ADDRESS} {NAME}")) as pair:
            yield pair
    except NamespacesUnavailableError as error:
        pytest.skip(error.reason)


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The two checkpoints of the tiny model, as directories."""
    root = tmp_path_factory.mktemp("checkpoints")
    return {name: write(root / name, name) for name in ("A", "B")}


@pytest.fixture
def trainer(hosts: tuple[Host, Host], checkpoints: dict[str, Path], tmp_path: Path) -> Iterator[Host]:
    """The trainer's host, while a mock that serves checkpoint A is healthy on the other."""
    trainer, mock = hosts
    serve: list[str | Path] = [
        sys.executable,
        "-m",
        "mock_vllm",
        "serve",
        checkpoints["A"],
        "--host",
        MOCK_ADDRESS,
        "--port",
        str(PORT),
    ]
    log = tmp_path / "mock.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            mock.command(*serve, "--vllm-version", "0.21.0", "--receiver", "tcp"),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        for attempt in range(15):
            try:
                trainer.fetch(f"{ENGINE}/health", seconds=1)
                break
            except NoAnswerError as error:
                if attempt == 14 or process.poll() is not None:
                    pytest.fail(f"the mock is not healthy: {error}\n{log.read_text(errors='replace')[-2000:]}")
        yield trainer
    finally:
        process.terminate()
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(timeout=10)


def push(trainer: Host, checkpoint: Path, *options: str, seconds: float = 60.0) -> subprocess.CompletedProcess[str]:
    """``vime-sync push`` from the trainer's host."""
    words = ("-m", "vime_sync", "push", str(checkpoint), "--engine", ENGINE, *options)
    return trainer.run(sys.executable, *words, seconds=seconds)


def digests(checkpoint: Path) -> dict[str, str]:
    """Name to sha256 of the raw bytes, read as the format's description says, by no code of the packages."""
    data = (checkpoint / "model.safetensors").read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:start])
    spans = {name: entry["data_offsets"] for name, entry in header.items() if name != "__metadata__"}
    return {name: hashlib.sha256(data[start + a : start + b]).hexdigest() for name, (a, b) in spans.items()}


def held(trainer: Host) -> dict[str, dict[str, Any]]:
    """What the mock's only rank holds, asked over the link."""
    ranks = trainer.fetch(f"{ENGINE}/mock/weights")["ranks"]
    assert len(ranks) == 1
    weights: dict[str, dict[str, Any]] = ranks[0]["weights"]
    return weights


def assert_one_line(message: str) -> None:
    """What an error is to be: no traceback, and nothing to scroll through."""
    assert [line for line in message.splitlines() if "error" in line] == message.strip().splitlines()[-1:], message
    assert "Traceback" not in message


@pytest.mark.parametrize(
    "options",
    [
        pytest.param(["--no-packed", "--master-address", TRAINER_ADDRESS], id="plain"),
        pytest.param(["--packed", "--master-address", TRAINER_ADDRESS], id="packed"),
        pytest.param([], id="address found by routing"),
        pytest.param(
            ["--master-address", NAME, "--bind-address", "0.0.0.0"], id="name that the mock's host alone knows"
        ),
    ],
)
def test_a_sync_crosses_the_link(trainer: Host, checkpoints: dict[str, Path], options: list[str]) -> None:
    before = {name: weight["sha256"] for name, weight in held(trainer).items()}
    assert before == digests(checkpoints["A"])

    done = push(trainer, checkpoints["B"], *options)

    assert done.returncode == 0, done.stdout + done.stderr
    after = held(trainer)
    assert {name: weight["sha256"] for name, weight in after.items()} == digests(checkpoints["B"])
    assert {(weight["origin"], weight["live"]) for weight in after.values()} == {("transfer", True)}
    expected = NAME if NAME in options else TRAINER_ADDRESS
    assert trainer.fetch(f"{ENGINE}/mock/state")["group"]["master_address"] == expected


def test_a_master_address_that_no_route_leads_to(trainer: Host, checkpoints: dict[str, Path]) -> None:
    done = push(trainer, checkpoints["B"], "--master-address", ELSEWHERE, "--timeout", "5")

    assert done.returncode == REFUSED, done.stdout + done.stderr
    assert ELSEWHERE in done.stderr
    assert "unreachable" in done.stderr
    assert_one_line(done.stderr)
    assert {weight["origin"] for weight in held(trainer).values()} == {"checkpoint"}


def test_a_trainer_that_listens_on_its_own_loopback(trainer: Host, checkpoints: dict[str, Path]) -> None:
    began = time.monotonic()
    options = ("--master-address", TRAINER_ADDRESS, "--bind-address", "127.0.0.1", "--timeout", "2")
    done = push(trainer, checkpoints["B"], *options)

    assert done.returncode == TENSORS_DID_NOT_TRAVEL, done.stdout + done.stderr
    assert 2 <= time.monotonic() - began < 20  # the mock dials on until the deadline: the trainer might be late
    assert "--master-address" in done.stderr
    assert_one_line(done.stderr)
    assert {weight["origin"] for weight in held(trainer).values()} == {"checkpoint"}


def test_a_link_that_is_down(hosts: tuple[Host, Host], trainer: Host, checkpoints: dict[str, Path]) -> None:
    mock = hosts[1]
    mock.link("down")
    try:
        done = push(trainer, checkpoints["B"], "--timeout", "2")
    finally:
        mock.link("up")

    assert done.returncode == ENGINE_NOT_REACHED, done.stdout + done.stderr
    assert ENGINE in done.stderr
    assert_one_line(done.stderr)
