"""Digests of what was sent against what a mock shows."""

from __future__ import annotations

import hashlib
import threading
from typing import Any

import pytest

from tests.support.arrays import Array
from vime_sync import digests as digests_module
from vime_sync.digests import SentDigests, SentTensor, compare
from vime_sync.errors import DigestMismatch

pytestmark = pytest.mark.unit

W = SentTensor("float32", (2,), 8, hashlib.sha256(b"12345678").hexdigest())
V = SentTensor("bfloat16", (), 2, hashlib.sha256(b"12").hexdigest())


def record(tensor: SentTensor, **changes: Any) -> dict[str, Any]:
    found = {
        "dtype": tensor.dtype,
        "shape": list(tensor.shape),
        "nbytes": tensor.nbytes,
        "sha256": tensor.sha256,
        "origin": "transfer",
        "update": 1,
        "loaded": True,
        "live": True,
    }
    return found | changes


def weights(*ranks: dict[str, Any]) -> dict[str, Any]:
    return {"schema": "mock-vllm/weights/1", "ranks": [{"rank": n, "weights": held} for n, held in enumerate(ranks)]}


def test_digests_are_those_of_the_bytes() -> None:
    digests = SentDigests()
    array = Array("w", "int16", (3,), seed=5)
    digests.add(array, array.read())
    digests.settle()
    digests.close()
    expected = hashlib.sha256(bytes([5, 6, 7, 8, 9, 10])).hexdigest()
    assert digests.sent == {"w": SentTensor("int16", (3,), 6, expected)}


def test_hashing_lags_at_most_one_bucket_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    gate = threading.Event()
    hashed: list[str] = []

    def slow(tensor: Array, _view: memoryview) -> SentTensor:
        assert gate.wait(5.0)
        hashed.append(tensor.name)
        return W

    monkeypatch.setattr(digests_module, "_digest", slow)
    digests = SentDigests()
    first, second, third = (Array(name) for name in "abc")
    digests.add(first, first.read())
    digests.end_bucket()
    assert hashed == [], "the first bucket need not be hashed before the second travels"
    gate.set()
    digests.add(second, second.read())
    digests.end_bucket()
    assert "a" in digests.sent, "two buckets are held, not three"
    digests.add(third, third.read())
    digests.settle()
    assert list(digests.sent) == ["a", "b", "c"]
    digests.close()


def test_all_ranks_hold_everything() -> None:
    held = {"w": record(W), "v": record(V), "other": {}}
    found = compare({"w": W, "v": V}, weights(held, held))
    assert (found.verified, found.reason, found.ignored) == (True, None, ())


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"sha256": "0" * 64}, "sha256 000000000000…"),
        ({"dtype": "float16"}, "dtype 'float16'"),
        ({"shape": [1, 2]}, r"shape \[1, 2\]"),
        ({"nbytes": 4}, "nbytes 4"),
        ({"origin": "checkpoint"}, "not received"),
        ({"live": False}, "received but not live"),
    ],
)
def test_a_difference_names_the_tensor_and_why(changes: dict[str, Any], why: str) -> None:
    with pytest.raises(DigestMismatch, match=rf"rank 1: w \({why}") as caught:
        compare(
            {"w": W, "v": V}, weights({"w": record(W), "v": record(V)}, {"w": record(W, **changes), "v": record(V)})
        )
    assert caught.value.names == ("w",)
    assert set(caught.value.by_rank) == {1}


def test_missing_tensors_are_named_and_the_list_is_cut() -> None:
    sent = {f"t{index:03}": W for index in range(100)}
    with pytest.raises(DigestMismatch, match=r"100 tensors: rank 0: t000 \(missing\), .* and 95 more") as caught:
        compare(sent, weights({}))
    assert len(caught.value.names) == 100
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("rank", [None, [], {"rank": 0}, {"rank": 0, "weights": []}, {"rank": 0, "weights": {"w": 5}}])
def test_ranks_in_another_form_hold_nothing(rank: object) -> None:
    with pytest.raises(DigestMismatch, match="missing"):
        compare({"w": W}, {"ranks": [rank]})


@pytest.mark.parametrize("shown", [None, {}, {"ranks": []}, {"ranks": {}}])
def test_a_server_that_shows_nothing_verifies_nothing(shown: dict[str, Any] | None) -> None:
    found = compare({"w": W}, shown)
    assert found.verified is None
    assert "not verifiable" in (found.reason or "")


def test_a_mock_without_digests_verifies_nothing() -> None:
    found = compare({"w": W}, weights({"w": record(W, sha256=None)}))
    assert found.verified is None
    assert "no digests" in (found.reason or "")


def test_tensors_that_the_model_ignored_are_told() -> None:
    found = compare({"w": W, "v": V}, weights({"w": record(W, loaded=False), "v": record(V)}))
    assert (found.verified, found.ignored) == (True, ("w",))
