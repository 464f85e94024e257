"""A sync between two hosts: the mock in one network namespace, the trainer in another, a veth pair between them.

On one host every address reaches every process, and a mock that dials the wrong one, or a trainer that listens on the
wrong one, goes unnoticed. Here the two share nothing but the link, as a container and its host do.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from conformance.tiny_model import write

pytestmark = pytest.mark.integration

MOCK_ADDRESS = "10.214.0.2"
TRAINER_ADDRESS = "10.214.0.1"
PORT = 8000
ENGINE = f"http://{MOCK_ADDRESS}:{PORT}"

# Runs inside a namespace, where nothing else of this process can go: waits until the URL answers, prints the body.
_FETCH = """
import sys, time, urllib.request
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
end = time.monotonic() + float(sys.argv[2])
while True:
    try:
        sys.stdout.buffer.write(opener.open(sys.argv[1], timeout=5).read())
        break
    except OSError as error:
        if time.monotonic() > end:
            sys.exit(f"{sys.argv[1]}: {error}")
        time.sleep(0.02)
"""


@dataclass(frozen=True)
class Host:
    """One network namespace. Commands in it share this machine's files and nothing of its network."""

    namespace: str

    def command(self, *words: str | Path) -> list[str]:
        """The words of a command line that runs inside the namespace."""
        return ["ip", "netns", "exec", self.namespace, *map(str, words)]

    def run(self, *words: str | Path, seconds: float = 60.0) -> subprocess.CompletedProcess[str]:
        """Runs a command to its end. Raises TimeoutExpired after ``seconds``."""
        return subprocess.run(
            self.command(*words), capture_output=True, text=True, timeout=seconds, check=False, stdin=subprocess.DEVNULL
        )

    def fetch(self, url: str, seconds: float = 5.0) -> Any:
        """The JSON (or None for an empty body) that ``url`` answers to this host within ``seconds``."""
        done = self.run(sys.executable, "-c", _FETCH, url, str(seconds), seconds=seconds + 15)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout) if done.stdout else None


def ip(*words: str) -> None:
    """One command of iproute2. Raises CalledProcessError with its message."""
    subprocess.run(["ip", *words], capture_output=True, text=True, timeout=20, check=True)


def remove(namespace: str) -> None:
    """Ends what runs in a namespace of ours and removes it; its end of the link goes with it."""
    listed = subprocess.run(["ip", "netns", "pids", namespace], capture_output=True, text=True, timeout=20, check=False)
    for pid in listed.stdout.split():
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(pid), 9)
    subprocess.run(["ip", "netns", "del", namespace], capture_output=True, timeout=20, check=False)


@pytest.fixture(scope="module")
def hosts() -> Iterator[tuple[Host, Host]]:
    """The trainer's host and the mock's host, linked; gone afterwards whatever happened."""
    if shutil.which("ip") is None:
        pytest.skip("the command ip is missing (Debian package iproute2)")
    if os.geteuid() != 0:
        pytest.skip("making network namespaces needs root")
    trainer, mock = Host(f"wsc-trainer-{os.getpid()}"), Host(f"wsc-mock-{os.getpid()}")
    try:
        try:
            ip("netns", "add", trainer.namespace)
            ip("netns", "add", mock.namespace)
            ip("-n", mock.namespace, "link", "add", "eth0", "type", "veth", "peer", "eth0", "netns", trainer.namespace)
        except subprocess.CalledProcessError as error:
            pytest.skip(f"this machine makes no network namespaces or veth pairs: {error.stderr.strip()}")
        for host, address in ((trainer, TRAINER_ADDRESS), (mock, MOCK_ADDRESS)):
            ip("-n", host.namespace, "address", "add", f"{address}/30", "dev", "eth0")
            ip("-n", host.namespace, "link", "set", "lo", "up")
            ip("-n", host.namespace, "link", "set", "eth0", "up")
        yield trainer, mock
    finally:
        remove(trainer.namespace)
        remove(mock.namespace)


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The two checkpoints of the tiny model, as directories."""
    root = tmp_path_factory.mktemp("checkpoints")
    return {name: write(root / name, name) for name in ("A", "B")}


@pytest.fixture
def trainer(hosts: tuple[Host, Host], checkpoints: dict[str, Path], tmp_path: Path) -> Iterator[Host]:
    """The trainer's host, while a mock that serves checkpoint A is healthy on the other."""
    trainer, mock = hosts
    serve = [sys.executable, "-m", "mock_vllm", "serve", checkpoints["A"], "--host", MOCK_ADDRESS, "--port", str(PORT)]
    log = tmp_path / "mock.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            mock.command(*serve, "--vllm-version", "0.21.0", "--receiver", "tcp"),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        answer = None
        for _ in range(15):
            answer = trainer.run(sys.executable, "-c", _FETCH, f"{ENGINE}/health", "1")
            if answer.returncode == 0 or process.poll() is not None:
                break
        if answer is None or answer.returncode:
            pytest.fail(
                f"the mock is not healthy: {answer and answer.stderr}\n{log.read_text(errors='replace')[-2000:]}"
            )
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


@pytest.mark.parametrize("packing", ["--no-packed", "--packed"])
def test_a_sync_crosses_the_link(trainer: Host, checkpoints: dict[str, Path], packing: str) -> None:
    before = {name: weight["sha256"] for name, weight in held(trainer).items()}
    assert before == digests(checkpoints["A"])

    done = push(trainer, checkpoints["B"], "--master-address", TRAINER_ADDRESS, packing)

    assert done.returncode == 0, done.stdout + done.stderr
    after = held(trainer)
    assert {name: weight["sha256"] for name, weight in after.items()} == digests(checkpoints["B"])
    assert {(weight["origin"], weight["live"]) for weight in after.values()} == {("transfer", True)}
    assert trainer.fetch(f"{ENGINE}/mock/state")["group"]["master_address"] == TRAINER_ADDRESS
