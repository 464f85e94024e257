"""Where packed buffers are cut, and what cannot be unpacked."""

from __future__ import annotations

from typing import Any

import pytest

from mock_vllm.engine.packing import announced_packed, check_unpacking, cut_buffers
from mock_vllm.errors import WorkerError

pytestmark = pytest.mark.unit


def cuts(sizes: list[int], limit: Any, num_buffers: Any = 2) -> list[list[int]]:
    tensors = announced_packed([f"t{n}" for n in range(len(sizes))], ["uint8"] * len(sizes), [[n] for n in sizes])
    return [[tensor.nbytes for tensor in bucket] for bucket in cut_buffers(tensors, limit, num_buffers)]


@pytest.mark.parametrize(
    ("sizes", "limit", "expected"),
    [
        ([16, 16, 8, 24], 16, [[16, 16], [8, 24]]),
        ([16], 16, [[16]]),
        ([16, 1], 16, [[16, 1]]),
        ([17, 1], 16, [[17], [1]]),
        ([100, 1, 1], 16, [[100], [1, 1]]),
        ([], 16, []),
        ([0, 0], 16, [[0, 0]]),
        ([1, 1, 1], 0, [[1], [1], [1]]),
        ([1, 1], -1, [[1], [1]]),
    ],
)
def test_a_buffer_is_full_once_the_sum_exceeds_its_size(
    sizes: list[int], limit: int, expected: list[list[int]]
) -> None:
    assert cuts(sizes, limit) == expected


@pytest.mark.parametrize(
    ("limit", "num_buffers", "text"),
    [
        (16, 0, "list index out of range"),
        (16, "2", "'str' object cannot be interpreted as an integer"),
        ("16", 2, "'>' not supported between instances of 'int' and 'str'"),
    ],
)
def test_numbers_that_are_none(limit: Any, num_buffers: Any, text: str) -> None:
    with pytest.raises(WorkerError) as caught:
        cuts([1], limit, num_buffers)
    assert str(caught.value) == text


def test_a_number_of_buffers_allocates_nothing() -> None:
    assert cuts([1], 16, num_buffers=10**30) == [[1]]


def test_dtypes_are_looked_up_one_by_one() -> None:
    tensors = announced_packed(["a", "b"], ["uint8", "float33"], [[32], [1]])
    buffers = cut_buffers(tensors, 16, 2)
    assert [tensor.name for tensor in next(buffers)] == ["a"]
    with pytest.raises(WorkerError, match="module 'torch' has no attribute 'float33'"):
        next(buffers)


def test_an_odd_offset_cannot_be_viewed() -> None:
    bucket = list(announced_packed(["a", "b"], ["uint8", "bfloat16"], [[3], [2]]))
    with pytest.raises(WorkerError) as caught:
        check_unpacking(bucket)
    assert str(caught.value) == (
        "self.storage_offset() must be divisible by 2 to view Byte as BFloat16 (different element sizes), but got 3"
    )


def test_aligned_offsets_can_be_viewed() -> None:
    check_unpacking(list(announced_packed(["a", "b", "c"], ["bfloat16", "bool", "uint8"], [[3], [3], [1]])))
