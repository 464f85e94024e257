"""Received against sent: every way in which they can differ is named."""

from __future__ import annotations

import hashlib

import pytest

from conformance.cases.common import filled
from conformance.oracle import differences, not_in_use
from conformance.strided import columns
from conformance.targets.base import ReceivedTensor
from conformance.tensor import Tensor

pytestmark = pytest.mark.unit

SENT = filled("a", "float32", 2, 3)


def as_received(tensor: Tensor, **changes: object) -> ReceivedTensor:
    fields = {
        "dtype": tensor.dtype,
        "shape": tensor.shape,
        "nbytes": tensor.nbytes,
        "sha256": hashlib.sha256(tensor.data).hexdigest(),
        **changes,
    }
    return ReceivedTensor(**fields)  # type: ignore[arg-type]


def test_what_arrived_whole_is_no_difference() -> None:
    assert differences([SENT], [{"a": as_received(SENT)}], exactly=True) == []


def test_one_flipped_bit_is_named() -> None:
    flipped = Tensor("a", "float32", (2, 3), bytes([SENT.data[0] ^ 1]) + SENT.data[1:])
    found = differences([SENT], [{"a": as_received(flipped)}], exactly=True)
    assert len(found) == 1
    assert found[0].startswith("worker 0 holds other bytes of a: ")


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"dtype": "int32"}, "worker 0 holds a as int32[2, 3] of 24 bytes, sent float32[2, 3] of 24"),
        ({"shape": (3, 2)}, "worker 0 holds a as float32[3, 2] of 24 bytes, sent float32[2, 3] of 24"),
        ({"nbytes": 12}, "worker 0 holds a as float32[2, 3] of 12 bytes, sent float32[2, 3] of 24"),
    ],
)
def test_another_form_is_named(changes: dict[str, object], text: str) -> None:
    assert differences([SENT], [{"a": as_received(SENT, **changes)}], exactly=True) == [text]


def test_missing_extra_and_no_workers() -> None:
    assert differences([SENT], [{}], exactly=True) == ["worker 0 did not receive a"]
    extra = {"a": as_received(SENT), "b": as_received(SENT)}
    assert differences([SENT], [extra], exactly=True) == ["worker 0 received b, which was not sent"]
    assert differences([SENT], [extra], exactly=False) == []
    assert differences([SENT], [], exactly=True) == ["the server lists no worker"]


def test_every_worker_is_asked() -> None:
    held = [{"a": as_received(SENT)}, {}]
    assert differences([SENT], held, exactly=True) == ["worker 1 did not receive a"]


def test_what_is_not_in_use() -> None:
    assert not_in_use([SENT], [{"a": as_received(SENT, live=False)}]) == ["worker 0 does not use a yet"]
    assert not_in_use([SENT], [{"a": as_received(SENT, live=True)}, {"a": as_received(SENT)}, {}]) == []
    assert not_in_use([SENT], [{"a": as_received(SENT, held_sha256=SENT.sha256, live=True)}]) == []
    dropped = as_received(SENT, held_sha256="00", live=True)
    assert not_in_use([SENT], [{"a": dropped}]) == ["worker 0 received a but holds other bytes: 00"]


def test_a_strided_view_is_what_torch_gathers() -> None:
    torch = pytest.importorskip("torch")
    source = filled("m", "float32", 6, 8)
    whole = torch.frombuffer(bytearray(source.data), dtype=torch.float32).view(6, 8)
    view = whole[:, ::3]
    assert not view.is_contiguous()
    gathered = columns(source, 3)
    assert gathered.shape == tuple(view.shape)
    assert gathered.data == view.contiguous().numpy().tobytes()
    with pytest.raises(ValueError, match="a matrix is needed"):
        columns(filled("v", "float32", 6), 2)
