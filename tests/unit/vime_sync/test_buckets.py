"""Buckets by bytes, vLLM's cuts, and what goes in which form."""

from __future__ import annotations

import pytest

from tests.support.arrays import ITEM_SIZES, Array
from vime_sync.buckets import Bucket, cuts, plan
from vime_sync.errors import SettingError, UnsupportedTensor
from vime_sync.releases import release_of

pytestmark = pytest.mark.unit

V21 = release_of("0.21.0")


def raw(*sizes: int) -> list[Array]:
    return [Array(f"t{index}", "uint8", (size,)) for index, size in enumerate(sizes)]


def sizes(groups: list[tuple[Array, ...]]) -> list[list[int]]:
    return [[tensor.nbytes for tensor in group] for group in groups]


def names(buckets: list[Bucket]) -> list[list[str]]:
    return [[tensor.name for tensor in bucket.tensors] for bucket in buckets]


@pytest.mark.parametrize(
    ("given", "limit", "expected"),
    [
        # Run on vLLM's own code: sizes 16, 16, 8, 24 with limit 16 make two broadcasts of 32.
        ([16, 16, 8, 24], 16, [[16, 16], [8, 24]]),
        ([16], 16, [[16]]),
        ([16, 1], 16, [[16, 1]]),
        ([17, 1], 16, [[17], [1]]),
        ([100, 1, 1], 16, [[100], [1, 1]]),
        ([1, 100, 1], 16, [[1, 100], [1]]),
        ([0, 0], 16, [[0, 0]]),
        ([], 16, []),
        ([8, 8, 8], 1 << 30, [[8, 8, 8]]),
    ],
)
def test_a_packed_buffer_is_cut_once_it_exceeds_its_size(
    given: list[int], limit: int, expected: list[list[int]]
) -> None:
    assert sizes(cuts(raw(*given), limit)) == expected  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "limit", "expected"),
    [
        ([4, 4, 4], 8, [["t0", "t1"], ["t2"]]),
        ([9, 1], 8, [["t0"], ["t1"]]),
        ([1, 9, 1], 8, [["t0"], ["t1"], ["t2"]]),
        ([8, 8], 8, [["t0"], ["t1"]]),
        ([0, 9, 0], 8, [["t0", "t1", "t2"]]),
        ([1], 1, [["t0"]]),
    ],
)
@pytest.mark.parametrize("packed", [True, False])
def test_a_bucket_keeps_to_its_bytes_unless_one_tensor_is_larger(
    given: list[int], limit: int, expected: list[list[str]], packed: bool
) -> None:
    buckets = plan(raw(*given), V21, packed=packed, bucket_bytes=limit)
    assert names(buckets) == expected
    assert [bucket.index for bucket in buckets] == list(range(len(expected)))
    assert all(bucket.packed is packed for bucket in buckets)


def test_plain_buckets_broadcast_each_tensor_by_itself() -> None:
    (bucket,) = plan(raw(1, 2, 3), V21, packed=False)
    assert [len(tensors) for tensors in bucket.broadcasts] == [1, 1, 1]
    assert bucket.update_info() == {
        "names": ["t0", "t1", "t2"],
        "dtype_names": ["uint8"] * 3,
        "shapes": [[1], [2], [3]],
    }
    assert bucket.nbytes == 6


def test_packed_buckets_announce_the_size_that_they_are_cut_by() -> None:
    (bucket,) = plan(raw(10, 10, 10), V21, packed=True, packed_buffer_bytes=15)
    assert [[tensor.nbytes for tensor in tensors] for tensors in bucket.broadcasts] == [[10, 10], [10]]
    assert bucket.update_info()["packed"] is True
    assert bucket.update_info()["packed_buffer_size_bytes"] == 15


def test_every_packed_tensor_begins_at_a_multiple_of_its_item_size() -> None:
    tensors = [
        Array("odd", "uint8", (3,)),
        Array("half", "bfloat16", (5,)),
        Array("wide", "int64", (1,)),
        Array("eight", "float8_e4m3fn", (7,)),
        Array("single", "float32", (3,)),
    ]
    (bucket,) = plan(tensors, V21, packed=True, packed_buffer_bytes=20)
    assert len(bucket.broadcasts) > 1
    for broadcast in bucket.broadcasts:
        offset = 0
        for tensor in broadcast:
            assert offset % ITEM_SIZES[tensor.dtype] == 0, tensor.name
            offset += tensor.nbytes
    assert names([bucket]) == [["wide", "single", "half", "odd", "eight"]]


def test_packed_buckets_say_nothing_of_packing_from_0_28_on() -> None:
    (bucket,) = plan(raw(10, 10, 10), release_of("0.28.0"), packed=True, packed_buffer_bytes=15)
    assert [[tensor.nbytes for tensor in tensors] for tensors in bucket.broadcasts] == [[10, 10], [10]]
    assert bucket.packed
    assert set(bucket.update_info()) == {"names", "dtype_names", "shapes"}


def test_what_cannot_be_packed_goes_plain_and_the_other_way_round() -> None:
    tensors = [
        Array("scalar", "float32", ()),
        Array("mask", "bool", (3,)),
        Array("weight", "float32", (2,)),
        Array("short", "int16", (2,)),
        Array("e5m2", "float8_e5m2", (2,)),
    ]
    packed = plan(tensors, V21, packed=True)
    assert [(bucket.packed, names([bucket])[0]) for bucket in packed] == [
        (True, ["weight", "short", "mask", "e5m2"]),
        (False, ["scalar"]),
    ]
    plain = plan(tensors, V21, packed=False)
    assert [(bucket.packed, names([bucket])[0]) for bucket in plain] == [
        (True, ["short", "mask", "e5m2"]),
        (False, ["scalar", "weight"]),
    ]


def test_what_no_form_can_carry_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedTensor, match=r"flag \(bool \[\]\)") as caught:
        plan([Array("w"), Array("flag", "bool", ())], V21, packed=True)
    assert "0.21.0" in str(caught.value)
    with pytest.raises(UnsupportedTensor, match="mask"):
        plan([Array("mask", "bool", (3,))], release_of("0.28.0"), packed=False)


def test_many_refused_names_are_cut() -> None:
    with pytest.raises(UnsupportedTensor, match="and 95 more"):
        plan([Array(f"flag{index}", "bool", ()) for index in range(100)], V21, packed=True)


def test_bad_arguments() -> None:
    with pytest.raises(SettingError, match="'t0' comes twice"):
        plan([*raw(1), *raw(1)], V21, packed=True)
    for size in (0, -1, True, 1.5):
        with pytest.raises(SettingError, match="bucket size"):
            plan(raw(1), V21, packed=True, bucket_bytes=size)  # type: ignore[arg-type]
        with pytest.raises(SettingError, match="packed buffer size"):
            plan(raw(1), V21, packed=True, packed_buffer_bytes=size)  # type: ignore[arg-type]
