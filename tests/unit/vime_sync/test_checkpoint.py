"""What a path may mean."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.arrays import Array, safetensors_file
from vime_sync.checkpoint import open_checkpoint
from vime_sync.errors import BrokenHeader, CheckpointError, MissingFile
from vime_sync.exit_codes import CHECKPOINT, exit_code

pytestmark = pytest.mark.unit

A = Array("a", seed=1)
B = Array("b", seed=2)


def sharded(folder: Path, weight_map: object = None, name: str = "model.safetensors.index.json") -> Path:
    safetensors_file(folder / "model-00001-of-00002.safetensors", A)
    safetensors_file(folder / "model-00002-of-00002.safetensors", B)
    if weight_map is None:
        weight_map = {"b": "model-00002-of-00002.safetensors", "a": "model-00001-of-00002.safetensors"}
    index = folder / name
    index.write_text(json.dumps({"metadata": {"total_size": 16}, "weight_map": weight_map}))
    return index


def names(path: Path) -> list[str]:
    with open_checkpoint(path) as checkpoint:
        return [tensor.name for tensor in checkpoint]


def test_a_single_file(tmp_path: Path) -> None:
    path = safetensors_file(tmp_path / "any.safetensors", A, B)
    with open_checkpoint(str(path)) as checkpoint:
        assert [tensor.name for tensor in checkpoint] == ["a", "b"]
        assert (len(checkpoint), checkpoint.nbytes, checkpoint.unlisted) == (2, 16, [])


def test_a_directory_with_model_safetensors(tmp_path: Path) -> None:
    safetensors_file(tmp_path / "model.safetensors", A)
    safetensors_file(tmp_path / "adapter.safetensors", B)
    (tmp_path / "config.json").write_text("{}")
    assert names(tmp_path) == ["a"]


def test_a_directory_with_one_file_of_another_name(tmp_path: Path) -> None:
    safetensors_file(tmp_path / "weights.safetensors", A)
    assert names(tmp_path) == ["a"]


def test_shards_by_directory_and_by_index(tmp_path: Path) -> None:
    index = sharded(tmp_path)
    assert names(tmp_path) == names(index) == ["b", "a"]


def test_an_index_of_another_name(tmp_path: Path) -> None:
    sharded(tmp_path, name="consolidated.safetensors.index.json")
    assert names(tmp_path) == ["b", "a"]


def test_a_symbolic_link_to_a_shard_is_the_user_s_own(tmp_path: Path) -> None:
    # The layout of the Hugging Face cache: a snapshot is a directory of links.
    blobs, snapshot = tmp_path / "blobs", tmp_path / "snapshot"
    blobs.mkdir()
    snapshot.mkdir()
    index = sharded(blobs)
    for file in [index, *blobs.glob("*.safetensors")]:
        (snapshot / file.name).symlink_to(file)
    assert names(snapshot) == ["b", "a"]


def test_the_index_decides_what_belongs_to_the_checkpoint(tmp_path: Path) -> None:
    sharded(tmp_path, {"a": "model-00001-of-00002.safetensors"})
    safetensors_file(tmp_path / "model-00001-of-00002.safetensors", A, Array("stray"))
    with open_checkpoint(tmp_path) as checkpoint:
        assert [tensor.name for tensor in checkpoint] == ["a"]
        assert checkpoint.unlisted == ["stray"]


def test_a_missing_shard_is_named(tmp_path: Path) -> None:
    sharded(tmp_path, {"a": "model-00001-of-00002.safetensors", "b": "model-00003-of-00002.safetensors"})
    with pytest.raises(MissingFile, match="model-00003-of-00002") as caught:
        open_checkpoint(tmp_path)
    assert caught.value.next_step is not None


def test_a_shard_that_lacks_its_tensor(tmp_path: Path) -> None:
    sharded(tmp_path, {"c": "model-00001-of-00002.safetensors"})
    with pytest.raises(BrokenHeader, match="'c'.*model-00001-of-00002"):
        open_checkpoint(tmp_path)


def test_a_broken_shard_is_named(tmp_path: Path) -> None:
    sharded(tmp_path)
    (tmp_path / "model-00002-of-00002.safetensors").write_bytes(b"x")
    with pytest.raises(BrokenHeader, match="model-00002-of-00002"):
        open_checkpoint(tmp_path)


@pytest.mark.parametrize("shard", ["../secret.safetensors", "/etc/passwd", "", "a/../../x.safetensors"])
def test_a_shard_outside_the_directory_is_refused(tmp_path: Path, shard: str) -> None:
    sharded(tmp_path, {"a": shard})
    with pytest.raises(BrokenHeader, match="outside"):
        open_checkpoint(tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "{}",
        '{"weight_map": []}',
        '{"weight_map": {"a": 1}}',
        '{"weight_map": {"a": "x", "a": "y"}}',
        "[" * 200_000,
    ],
)
def test_a_broken_index(tmp_path: Path, text: str) -> None:
    (tmp_path / "model.safetensors.index.json").write_text(text)
    with pytest.raises(BrokenHeader, match=r"index\.json"):
        open_checkpoint(tmp_path)


def test_an_index_that_is_not_utf8(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors.index.json").write_bytes(b"\xff\xfe{}")
    with pytest.raises(BrokenHeader, match="not JSON"):
        open_checkpoint(tmp_path)


@pytest.fixture
def a_socket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)  # the path of a socket may be 107 bytes long at most
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind("s")
        yield tmp_path / "s"


def irregular(kind: str, path: Path, a_socket: Path) -> None:
    path.unlink(missing_ok=True)
    if kind == "fifo":
        os.mkfifo(path)
    else:
        path.symlink_to({"device": Path("/dev/zero"), "socket": a_socket}[kind])


@pytest.mark.timeout(20)
@pytest.mark.parametrize("kind", ["fifo", "device", "socket"])
@pytest.mark.parametrize("part", ["file", "index", "shard"])
def test_what_is_no_regular_file_is_refused_at_once(tmp_path: Path, a_socket: Path, part: str, kind: str) -> None:
    folder = tmp_path / "checkpoint"
    folder.mkdir()
    index = sharded(folder)
    odd = {"file": folder / "x.safetensors", "index": index, "shard": folder / "model-00002-of-00002.safetensors"}[part]
    irregular(kind, odd, a_socket)
    with pytest.raises(CheckpointError, match="is no regular file") as caught:
        open_checkpoint(odd if part == "file" else index)
    assert caught.value.file == str(odd)
    assert exit_code(caught.value) == CHECKPOINT


def test_a_checkpoint_without_tensors_is_named(tmp_path: Path) -> None:
    single = safetensors_file(tmp_path / "model.safetensors")
    (tmp_path / "shards").mkdir()
    index = sharded(tmp_path / "shards", {})
    for path in (single, index):
        with pytest.raises(CheckpointError, match="holds no tensors") as caught:
            open_checkpoint(path)
        assert caught.value.file == str(path)
        assert exit_code(caught.value) == CHECKPOINT


def test_a_shard_that_no_file_system_can_name(tmp_path: Path) -> None:
    sharded(tmp_path, {"a": "\ud800.safetensors"})
    with pytest.raises(MissingFile, match="no such file"):
        open_checkpoint(tmp_path)


def test_nothing_there(tmp_path: Path) -> None:
    with pytest.raises(MissingFile, match="holds neither"):
        open_checkpoint(tmp_path)
    with pytest.raises(MissingFile, match="no such file"):
        open_checkpoint(tmp_path / "none")
    with pytest.raises(MissingFile, match="no such file"):
        open_checkpoint(tmp_path / "none.safetensors.index.json")


def test_several_checkpoints_are_not_guessed_among(tmp_path: Path) -> None:
    safetensors_file(tmp_path / "one.safetensors", A)
    safetensors_file(tmp_path / "two.safetensors", B)
    with pytest.raises(CheckpointError, match="several"):
        open_checkpoint(tmp_path)
    both = tmp_path / "both"
    both.mkdir()
    sharded(both)
    safetensors_file(both / "model.safetensors", A)
    with pytest.raises(CheckpointError, match="several"):
        open_checkpoint(both)


def test_other_formats_are_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "pytorch_model.bin"
    path.write_bytes(b"PK")
    with pytest.raises(CheckpointError, match="only safetensors"):
        open_checkpoint(path)
