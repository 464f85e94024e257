"""Torch tensors as bytes."""

from __future__ import annotations

import struct

import pytest

from tests.support.arrays import Array
from vime_sync.errors import Mismatch, UnsupportedTensor
from vime_sync.tensors import TorchTensor, from_torch, read_checked

pytestmark = pytest.mark.unit

torch = pytest.importorskip("torch")


def test_bytes_are_little_endian_and_row_major() -> None:
    source = TorchTensor("w", torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
    assert (source.name, source.dtype, source.shape, source.nbytes) == ("w", "float32", (2, 2), 16)
    assert bytes(read_checked(source)) == struct.pack("<4f", 1, 2, 3, 4)


def test_a_tensor_that_is_not_contiguous_is_sent_in_its_own_order() -> None:
    tensor = torch.tensor([[1, 2, 3], [4, 5, 6]], dtype=torch.int64)
    assert bytes(TorchTensor("t", tensor.t()).read()) == struct.pack("<6q", 1, 4, 2, 5, 3, 6)
    assert bytes(TorchTensor("s", tensor[:, ::2]).read()) == struct.pack("<4q", 1, 3, 4, 6)
    assert TorchTensor("s", tensor[:, ::2]).nbytes == 32


@pytest.mark.parametrize(
    ("dtype", "value", "content"),
    [
        ("bfloat16", 1.0, b"\x80\x3f"),
        ("float16", 1.0, b"\x00\x3c"),
        ("float8_e4m3fn", 1.0, b"\x38"),
        ("float8_e5m2", 1.0, b"\x3c"),
        ("bool", True, b"\x01"),
        ("int8", -1, b"\xff"),
    ],
)
def test_types_that_numpy_lacks_are_bytes_too(dtype: str, value: object, content: bytes) -> None:
    source = TorchTensor("x", torch.tensor([value, value]).to(getattr(torch, dtype)))
    assert (source.dtype, source.nbytes) == (dtype, 2 * len(content))
    assert bytes(read_checked(source)) == content * 2


def test_zero_dimensions_and_zero_elements() -> None:
    scalar = TorchTensor("s", torch.tensor(1.0))
    assert (scalar.shape, bytes(scalar.read())) == ((), struct.pack("<f", 1))
    empty = TorchTensor("e", torch.zeros(0, 3, dtype=torch.bfloat16))
    assert (empty.shape, empty.nbytes, bytes(empty.read())) == ((0, 3), 0, b"")


def test_a_contiguous_tensor_is_not_copied() -> None:
    tensor = torch.zeros(4)
    view = TorchTensor("z", tensor).read()
    tensor[0] = 1.0
    assert bytes(view[:4]) == struct.pack("<f", 1)


def test_conjugated_views_and_parameters() -> None:
    complex_ = torch.tensor([1 + 2j], dtype=torch.complex64)
    assert bytes(TorchTensor("c", complex_.conj()).read()) == struct.pack("<2f", 1, -2)
    parameter = torch.nn.Parameter(torch.ones(1))
    assert bytes(TorchTensor("p", parameter).read()) == struct.pack("<f", 1)


def test_what_has_no_plain_bytes_is_refused_by_name() -> None:
    for tensor in (torch.zeros(2, device="meta"), torch.eye(2).to_sparse()):
        with pytest.raises(UnsupportedTensor, match="'odd'") as caught:
            from_torch({"odd": tensor})
        assert caught.value.tensor == "odd"
    with pytest.raises(UnsupportedTensor, match="list"):
        from_torch([("odd", [1, 2])])  # type: ignore[list-item]


def test_mappings_and_pairs_keep_their_order() -> None:
    pairs = [("b", torch.zeros(1)), ("a", torch.zeros(1))]
    assert [source.name for source in from_torch(dict(pairs))] == ["b", "a"]
    assert [source.name for source in from_torch(iter(pairs))] == ["b", "a"]


def test_a_source_that_yields_other_bytes_than_announced_is_caught() -> None:
    with pytest.raises(Mismatch) as caught:
        read_checked(Array("short", shape=(4,), content=b"123"))
    assert (caught.value.name, caught.value.announced, caught.value.got) == ("short", 16, 3)
