"""The splitter cuts a stream into tensors wherever its pieces end."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mock_vllm.engine.digests import TensorSplitter
from mock_vllm.engine.packing import announced_packed

pytestmark = pytest.mark.unit


@given(sizes=st.lists(st.integers(0, 9), max_size=6), piece=st.integers(1, 12), keep=st.booleans())
def test_every_tensor_gets_its_own_bytes(sizes: list[int], piece: int, keep: bool) -> None:
    stream = bytes(range(sum(sizes)))
    tensors = list(announced_packed(range(len(sizes)), ["uint8"] * len(sizes), [[size] for size in sizes]))
    splitter = TensorSplitter(tensors, keep)
    for begin in range(0, len(stream), piece):
        splitter(memoryview(stream)[begin : begin + piece])
    received = splitter.finish(has_bytes=True)
    offset = 0
    assert len(received) == len(sizes)
    for size, tensor in zip(sizes, received, strict=True):
        expected = stream[offset : offset + size]
        assert tensor.sha256 == hashlib.sha256(expected).hexdigest()
        assert tensor.data == (expected if keep else None)
        offset += size


def test_without_bytes_there_is_no_digest() -> None:
    tensors = list(announced_packed(["a"], ["uint8"], [[4]]))
    assert [tensor.sha256 for tensor in TensorSplitter(tensors, True).finish(has_bytes=False)] == [None]
