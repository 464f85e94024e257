"""Pushes that end in the middle: the mock is killed, or the user interrupts."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import requests

import vime_sync
from tests.support.arrays import Array, raw_file
from tests.support.mock_process import MockProcess
from vime_sync import Timeouts

pytestmark = pytest.mark.integration

LIMITS = Timeouts(total=20.0, grace=5.0)


def state(url: str) -> Any:
    return requests.get(f"{url}/mock/state", timeout=10).json()


def sparse_checkpoint(path: Path, tensors: int, each: int) -> Path:
    """A large file that takes no room on the disk."""
    header = {
        f"layer.{index}": {"dtype": "U8", "shape": [each], "data_offsets": [index * each, (index + 1) * each]}
        for index in range(tensors)
    }
    raw_file(path, header)
    with path.open("r+b") as opened:
        opened.truncate(path.stat().st_size + tensors * each)
    return path


class Killing:
    """Kills the mock once a good part has been sent."""

    def __init__(self, mock: MockProcess, after: int) -> None:
        self._mock = mock
        self._left = after

    def note(self, text: str) -> None:
        pytest.fail(text)

    def begin(self, nbytes: int, buckets: int) -> None:
        assert nbytes > self._left > 0
        assert buckets > 1

    def bucket(self, index: int) -> None:
        assert index >= 0

    def advance(self, nbytes: int) -> None:
        self._left -= nbytes
        if self._left < 0:
            self._mock.kill()
            self._left = 1 << 60

    def end(self) -> None:
        assert self._left > 1 << 50


@pytest.mark.parametrize("packed", [True, False])
def test_a_mock_that_is_killed_in_the_middle_is_an_error_at_once(tmp_path: Path, packed: bool) -> None:
    path = sparse_checkpoint(tmp_path / "large.safetensors", 32, 64 << 20)
    with MockProcess("large") as mock:
        began = time.monotonic()
        with pytest.raises((vime_sync.TransportError, vime_sync.PeerGone)) as caught:
            vime_sync.push(path, mock.url, packed=packed, timeouts=LIMITS, progress=Killing(mock, 300 << 20))
        assert time.monotonic() - began < 20.0
    assert "not known" in (caught.value.state or "")
    assert caught.value.next_step is not None
    assert "bucket" in str(caught.value)


def test_the_command_survives_the_kill_with_one_line_and_a_status(tmp_path: Path) -> None:
    path = sparse_checkpoint(tmp_path / "large.safetensors", 64, 64 << 20)
    with MockProcess("large") as mock:
        arguments = ["push", str(path), "--engine", mock.url, "--timeout", "20", "--quiet", "--bucket-bytes", "64MiB"]
        process = subprocess.Popen(
            [sys.executable, "-m", "vime_sync", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        deadline = time.monotonic() + 20.0
        while time.monotonic() < deadline and state(mock.url)["session"]["updates"] < 2:
            assert process.poll() is None, process.communicate()
        mock.kill()
        out, err = process.communicate(timeout=30)
    assert process.returncode in (4, 6)
    assert out == ""
    assert err.startswith("vime-sync: error: ")
    assert len(err.splitlines()) == 1
    assert "next: " in err


def test_an_interrupted_command_is_clean_and_leaves_the_engine_usable(tmp_path: Path) -> None:
    path = sparse_checkpoint(tmp_path / "large.safetensors", 64, 64 << 20)
    with MockProcess("large") as mock:
        arguments = ["push", str(path), "--engine", mock.url, "--timeout", "20", "--quiet", "--bucket-bytes", "64MiB"]
        process = subprocess.Popen(
            [sys.executable, "-m", "vime_sync", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        deadline = time.monotonic() + 20.0
        while time.monotonic() < deadline and state(mock.url)["session"]["updates"] < 2:
            assert process.poll() is None, process.communicate()
        process.send_signal(2)
        _, err = process.communicate(timeout=30)
        assert process.returncode == 130, err
        assert "interrupted" in err
        assert "Traceback" not in err
        after = state(mock.url)
        assert (after["paused"], after["session"]["active"]) == (True, False)
        assert vime_sync.push([Array("w")], mock.url, timeouts=LIMITS).verified is True
