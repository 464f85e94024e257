"""Headers read by hand: valid ones, and every way to break one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.arrays import Array, raw_file, safetensors_file
from vime_sync.errors import BrokenHeader, CheckpointError, MissingFile, UnsupportedTensor
from vime_sync.safetensors_file import SafetensorsFile

pytestmark = pytest.mark.unit


def entry(dtype: object = "F32", shape: object = (2,), offsets: object = (0, 8)) -> dict[str, object]:
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets}


def test_entries_have_their_metadata_and_bytes(tmp_path: Path) -> None:
    arrays = [
        Array("scalar", "float32", ()),
        Array("empty", "float16", (0, 3)),
        Array("matrix", "bfloat16", (2, 3), seed=7),
        Array("mask", "bool", (3,), content=b"\1\0\1"),
        Array("eight", "float8_e4m3fn", (5,)),
    ]
    with SafetensorsFile(safetensors_file(tmp_path / "x.safetensors", *arrays)) as file:
        assert set(file.entries) == {array.name for array in arrays}
        for array in arrays:
            found = file.entries[array.name]
            assert (found.dtype, found.shape, found.nbytes) == (array.dtype, array.shape, array.nbytes)
            assert bytes(found.read()) == bytes(array.read())


def test_it_agrees_with_the_reference_implementation(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    reference = pytest.importorskip("safetensors.torch")
    tensors = {
        "a": torch.arange(6, dtype=torch.float32).reshape(2, 3),
        "b": torch.ones(3, dtype=torch.bfloat16),
        "c": torch.tensor([1, 2], dtype=torch.int16),
        "d": torch.tensor(True),
        "e": torch.zeros(0, 2),
        "f": torch.ones(3).to(torch.float8_e5m2),
    }
    path = tmp_path / "ref.safetensors"
    reference.save_file(tensors, path)
    with SafetensorsFile(path) as file:
        for name, tensor in tensors.items():
            found = file.entries[name]
            assert found.dtype == str(tensor.dtype).removeprefix("torch.")
            assert found.shape == tuple(tensor.shape)
            assert bytes(found.read()) == tensor.reshape(-1).view(torch.uint8).numpy().tobytes()


def test_bytes_are_mapped_and_not_copied(tmp_path: Path) -> None:
    path = safetensors_file(tmp_path / "x.safetensors", Array("w", shape=(4,)))
    with SafetensorsFile(path) as file:
        view = file.entries["w"].read()
        with path.open("r+b") as opened:
            opened.seek(-16, 2)
            opened.write(b"changed!")
        assert bytes(view[:8]) == b"changed!"
        del view


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(MissingFile, match=r"none\.safetensors"):
        SafetensorsFile(tmp_path / "none.safetensors")


def test_a_directory_in_its_place(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="is no regular file"):
        SafetensorsFile(tmp_path)


BROKEN_HEADERS = [
    (b'{"\\ud800":' + json.dumps(entry()).encode() + b"}", "ud800.*surrogate"),
    (b"{", "not JSON"),
    (b"\xff\xfe", "not JSON"),
    (b"[]", "not a JSON object"),
    (b"[" * 200_000, "not JSON"),
    (b'{"a":' + json.dumps(entry()).encode() + b',"a":' + json.dumps(entry()).encode() + b"}", "'a' twice"),
    ({"w": []}, "'w'.*object"),
    ({"w": {}}, "'w'.*shape"),
    ({"w": entry(shape=[-1])}, "'w'.*shape"),
    ({"w": entry(shape=[True])}, "'w'.*shape"),
    ({"w": entry(shape=[2.0])}, "'w'.*shape"),
    ({"w": entry(shape="2")}, "'w'.*shape"),
    ({"w": entry(offsets=[0])}, "'w'.*data_offsets"),
    ({"w": entry(offsets=[0, "8"])}, "'w'.*data_offsets"),
    ({"w": entry(offsets=[-8, 0])}, "'w'.*data_offsets"),
    ({"w": entry(offsets=[8, 0])}, "'w'.*bytes 8 to 0"),
    ({"w": entry(offsets=[0, 16], shape=[4])}, "'w'.*of 8 bytes"),
    ({"w": entry(shape=[3])}, "'w'.*needs 12"),
    ({"w": entry(shape=[2**62, 2**62])}, "'w'.*needs"),
    ({"w": entry(dtype=4)}, "'w'.*dtype"),
    ({"w": entry(shape=[1], offsets=[0, 4]), "v": entry(shape=[1], offsets=[2, 6])}, "'v'.*overlaps"),
    ({"w": entry(shape=[1], offsets=[4, 8])}, "'w'.*gap"),
    ({"w": entry(shape=[1], offsets=[0, 4])}, "8 bytes of data where its header describes 4"),
]


@pytest.mark.parametrize(("header", "message"), BROKEN_HEADERS)
def test_a_broken_header_names_the_file_and_what_is_wrong(tmp_path: Path, header: object, message: str) -> None:
    path = raw_file(tmp_path / "broken.safetensors", header, b"x" * 8)  # type: ignore[arg-type]
    with pytest.raises(BrokenHeader, match=message) as caught:
        SafetensorsFile(path)
    assert str(path) in str(caught.value)
    assert caught.value.file == str(path)
    assert len(str(caught.value)) < 700


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "0 bytes are too few"),
        (b"1234567", "7 bytes are too few"),
        ((2**63).to_bytes(8, "little") + b"{}", "header of 9223372036854775808"),
        ((50).to_bytes(8, "little") + b"{}", "50 bytes and has 2 left"),
        (b"version https://git-lfs.github.com/spec/v1\n", "safetensors file"),
    ],
)
def test_a_file_that_is_none(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "x.safetensors"
    path.write_bytes(content)
    with pytest.raises(BrokenHeader, match=message):
        SafetensorsFile(path)


@pytest.mark.parametrize(("dtype", "why"), [("F4", "smaller than a byte"), ("F128", "unknown")])
def test_types_that_cannot_be_sent_are_refused_by_name(tmp_path: Path, dtype: str, why: str) -> None:
    path = raw_file(tmp_path / "x.safetensors", {"odd": entry(dtype=dtype)}, b"x" * 8)
    with pytest.raises(UnsupportedTensor, match=why) as caught:
        SafetensorsFile(path)
    assert caught.value.tensor == "odd"


def test_a_file_that_shrinks_while_in_use_is_an_error_and_not_a_crash(tmp_path: Path) -> None:
    path = safetensors_file(tmp_path / "x.safetensors", Array("w", shape=(100_000,)))
    with SafetensorsFile(path) as file:
        with path.open("r+b") as opened:
            opened.truncate(5000)
        with pytest.raises(CheckpointError, match="shrank"):
            file.entries["w"].read()
        path.unlink()
        with pytest.raises(CheckpointError, match="disappeared"):
            file.entries["w"].read()


def test_reading_after_closing_is_an_error(tmp_path: Path) -> None:
    file = SafetensorsFile(safetensors_file(tmp_path / "x.safetensors", Array("w")))
    file.close()
    with pytest.raises(CheckpointError, match="closed"):
        file.entries["w"].read()
    file.close()
