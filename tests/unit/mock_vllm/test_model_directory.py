"""A model directory that cannot be served is refused by file and reason."""

from __future__ import annotations

import hashlib
import json
import struct
from pathlib import Path
from typing import Any

import pytest

from mock_vllm.errors import SettingsError
from mock_vllm.model.directory import read_model_directory

pytestmark = pytest.mark.unit


def write(file: Path, header: Any, data: bytes = b"") -> None:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    file.write_bytes(struct.pack("<Q", len(text)) + text + data)


def tensor(begin: int, end: int, dtype: str = "U8", shape: list[int] | None = None) -> dict[str, Any]:
    return {"dtype": dtype, "shape": [end - begin] if shape is None else shape, "data_offsets": [begin, end]}


def test_the_tensors_of_all_files_are_known(tmp_path: Path) -> None:
    write(tmp_path / "a.safetensors", {"__metadata__": {"format": "pt"}, "x": tensor(0, 3)}, b"abc")
    write(tmp_path / "b.safetensors", {"y": tensor(0, 4, "BF16", [2]), "z": tensor(4, 4)}, b"wxyz")
    (tmp_path / "config.json").write_text('{"architectures": ["Some"], "max_position_embeddings": 7}')
    directory = read_model_directory(str(tmp_path))
    assert (directory.architecture, directory.max_model_len, directory.tied) == ("Some", 7, False)
    assert {name: held.shape for name, held in directory.tensors.items()} == {"x": (3,), "y": (2,), "z": (0,)}
    assert directory.tensors["x"].sha256() == hashlib.sha256(b"abc").hexdigest()
    assert directory.tensors["y"].read() == b"wxyz"
    assert directory.tensors["z"].sha256() == hashlib.sha256(b"").hexdigest()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"abc", "3 bytes are too few"),
        (struct.pack("<Q", 1 << 60), "the header claims 1152921504606846976 bytes, the file has 8"),
        (struct.pack("<Q", 2) + b"xx", "the header is not readable"),
        (struct.pack("<Q", 2) + b"[]", "the header is not readable"),
    ],
)
def test_a_broken_file(tmp_path: Path, content: bytes, reason: str) -> None:
    (tmp_path / "model.safetensors").write_bytes(content)
    with pytest.raises(SettingsError, match=rf"MODEL: .*model.safetensors: {reason}"):
        read_model_directory(str(tmp_path))


@pytest.mark.parametrize(
    "entry", [tensor(0, 9), tensor(3, 1), {"dtype": "U9", "shape": [], "data_offsets": [0, 1]}, {}]
)
def test_a_tensor_that_cannot_be(tmp_path: Path, entry: Any) -> None:
    write(tmp_path / "model.safetensors", {"x": entry}, b"abc")
    with pytest.raises(SettingsError, match="the header is not readable"):
        read_model_directory(str(tmp_path))


def test_no_file_at_all(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"has no \*.safetensors file"):
        read_model_directory(str(tmp_path))


def test_a_name_in_two_files(tmp_path: Path) -> None:
    write(tmp_path / "a.safetensors", {"x": tensor(0, 0)})
    write(tmp_path / "b.safetensors", {"x": tensor(0, 0)})
    with pytest.raises(SettingsError, match="tensor x is in a.safetensors and in b.safetensors"):
        read_model_directory(str(tmp_path))


@pytest.mark.parametrize("config", ["{", "[]"])
def test_a_broken_config(tmp_path: Path, config: str) -> None:
    write(tmp_path / "a.safetensors", {"x": tensor(0, 0)})
    (tmp_path / "config.json").write_text(config)
    with pytest.raises(SettingsError, match="config.json: not"):
        read_model_directory(str(tmp_path))
