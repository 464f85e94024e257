"""The command pushes a real checkpoint into a mock, and every byte of it arrives."""

from __future__ import annotations

import hashlib
import json
import mmap
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from tests.support.arrays import raw_file
from tests.support.mock_process import MockProcess
from tests.support.real_checkpoint import Unavailable, fetch

pytestmark = pytest.mark.integration

LARGEST_TENSOR = 30522 * 384 * 4


@pytest.fixture(scope="module")
def checkpoint() -> Path:
    try:
        return fetch()
    except Unavailable as reason:
        pytest.skip(str(reason))


@pytest.fixture(scope="module")
def expected(checkpoint: Path) -> dict[str, str]:
    """Name → sha256 of the file's own slices, read here from the format's description alone."""
    found = {}
    with checkpoint.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        data = 8 + int.from_bytes(mapped[:8], "little")
        for name, entry in json.loads(mapped[8:data]).items():
            if name != "__metadata__":
                begin, end = entry["data_offsets"]
                found[name] = hashlib.sha256(mapped[data + begin : data + end]).hexdigest()
    assert len(found) > 100
    return found


@pytest.fixture
def mock() -> Iterator[MockProcess]:
    with MockProcess("minilm", "--transfer-timeout", "20") as mock:
        yield mock


@pytest.mark.parametrize("bucket", ["256MiB", "16MiB"])
@pytest.mark.parametrize("form", ["--packed", "--no-packed"])
def test_every_tensor_arrives(
    checkpoint: Path, expected: dict[str, str], mock: MockProcess, form: str, bucket: str
) -> None:
    assert LARGEST_TENSOR > 16 << 20
    done = push(checkpoint, mock, form, "--bucket-bytes", bucket)
    assert done.returncode == 0, done.stderr
    assert "digests verified" in done.stdout
    weights = requests.get(f"{mock.url}/mock/weights", timeout=20).json()["ranks"][0]["weights"]
    assert {name: record["sha256"] for name, record in weights.items()} == expected
    assert all(record["live"] and record["origin"] == "transfer" for record in weights.values())


def test_a_packed_buffer_smaller_than_the_largest_tensor(
    checkpoint: Path, expected: dict[str, str], mock: MockProcess
) -> None:
    done = push(checkpoint, mock, "--packed-buffer-bytes", "1MB", "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    with checkpoint.open("rb") as opened:
        data = checkpoint.stat().st_size - 8 - int.from_bytes(opened.read(8), "little")
    assert (report["verified"], report["tensors"], report["bytes"]) == (True, len(expected), data)


def test_two_shards_and_their_index(
    checkpoint: Path, expected: dict[str, str], mock: MockProcess, tmp_path: Path
) -> None:
    content = checkpoint.read_bytes()
    data = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:data])
    names = sorted(expected)
    weight_map = {}
    for number, part in enumerate((names[::2], names[1::2]), start=1):
        shard = f"model-{number:05}-of-00002.safetensors"
        entries, pieces = {}, b""
        for name in part:
            begin, end = header[name]["data_offsets"]
            entries[name] = header[name] | {"data_offsets": [len(pieces), len(pieces) + end - begin]}
            pieces += content[data + begin : data + end]
            weight_map[name] = shard
        raw_file(tmp_path / shard, entries, pieces)
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))
    done = push(tmp_path, mock)
    assert done.returncode == 0, done.stderr
    assert f"pushed {len(expected)} tensors" in done.stdout
    weights = requests.get(f"{mock.url}/mock/weights", timeout=20).json()["ranks"][0]["weights"]
    assert {name: record["sha256"] for name, record in weights.items()} == expected


def push(checkpoint: Path, mock: MockProcess, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "vime_sync", "push", str(checkpoint), "--engine", mock.url, "--timeout", "60"]
    return subprocess.run([*command, *options], capture_output=True, text=True, timeout=100, check=False)
