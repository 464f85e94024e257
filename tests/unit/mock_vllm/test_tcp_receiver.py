"""The receiver of the TCP plane against a trainer that speaks raw bytes."""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, ClassVar

import pytest

from mock_vllm.receivers.receiver import PlaneError
from mock_vllm.receivers.tcp import TcpReceiver
from tests.support.plane_trainer import PlaneTrainer

pytestmark = pytest.mark.unit


class Rank:
    """A receiver with its events and the bytes it got."""

    made: ClassVar[list[Rank]] = []

    def __init__(self, timeout: float = 5.0, fail_on_mismatch: bool = False) -> None:
        self.events: list[tuple[str, str]] = []
        self.mismatch = threading.Event()
        self.received = bytearray()
        self.receiver = TcpReceiver(self._note, timeout, fail_on_mismatch)
        self.made.append(self)

    def _note(self, event: str, detail: str) -> None:
        self.events.append((event, detail))
        if event == "mismatch":
            self.mismatch.set()

    def names(self) -> list[str]:
        return [event for event, _ in self.events]

    def broadcast(self, nbytes: int) -> None:
        self.receiver.broadcast(nbytes, self.received.extend)


@pytest.fixture(autouse=True)
def _close_every_rank() -> Iterator[None]:
    yield
    while Rank.made:
        Rank.made.pop().receiver.close()


@pytest.fixture
def trainer() -> Iterator[PlaneTrainer]:
    with PlaneTrainer() as trainer:
        yield trainer


@pytest.fixture
def background() -> Iterator[Callable[..., Future[Any]]]:
    with ThreadPoolExecutor(2) as pool:
        yield pool.submit


def join(rank: Rank, trainer: PlaneTrainer, background: Callable[..., Future[Any]]) -> Rank:
    joining = background(rank.receiver.join, "127.0.0.1", trainer.port, 1, 2)
    trainer.accept()
    joining.result(5)
    return rank


def test_a_join_names_rank_and_world_size(trainer: PlaneTrainer, background: Callable[..., Future[Any]]) -> None:
    rank = join(Rank(), trainer, background)
    assert trainer.joins == [(b"WTPLANE1", 1, 2)]
    assert rank.names() == ["join", "joined"]


def test_the_bytes_of_a_broadcast_arrive(trainer: PlaneTrainer, background: Callable[..., Future[Any]]) -> None:
    rank = join(Rank(), trainer, background)
    payload = bytes(range(256)) * 5000
    sending = background(trainer.send, payload)
    rank.broadcast(len(payload))
    sending.result(5)
    assert rank.received == payload


def test_an_empty_broadcast_is_a_frame(trainer: PlaneTrainer, background: Callable[..., Future[Any]]) -> None:
    rank = join(Rank(), trainer, background)
    trainer.send(b"")
    trainer.send(b"ab")
    rank.broadcast(0)
    rank.broadcast(2)
    assert rank.received == b"ab"


def test_a_trainer_that_comes_later_is_waited_for(background: Callable[..., Future[Any]]) -> None:
    with PlaneTrainer() as early:
        port = early.port
    rank = Rank()
    joining = background(rank.receiver.join, "127.0.0.1", port, 1, 2)
    with PlaneTrainer() as trainer:
        trainer.listener.close()
        trainer.listener = socket.create_server(("127.0.0.1", port))
        trainer.listener.settimeout(5)
        trainer.accept()
        joining.result(5)


def test_nobody_listens_within_the_deadline() -> None:
    with PlaneTrainer() as gone:
        port = gone.port
    rank = Rank(timeout=0.2)
    began = time.monotonic()
    with pytest.raises(PlaneError, match=r"rank 1 of 2: nobody listened there within 0.2 s"):
        rank.receiver.join("127.0.0.1", port, 1, 2)
    assert time.monotonic() - began < 2
    assert rank.names() == ["join", "join_failed"]


def test_an_incomplete_group_ends_at_the_deadline(trainer: PlaneTrainer) -> None:
    rank = Rank(timeout=0.2)
    with pytest.raises(PlaneError, match="the group was not complete within 0.2 s"):
        rank.receiver.join("127.0.0.1", trainer.port, 1, 3)


def test_a_refused_join_carries_the_reason(trainer: PlaneTrainer, background: Callable[..., Future[Any]]) -> None:
    rank = Rank()
    joining = background(rank.receiver.join, "127.0.0.1", trainer.port, 1, 3)
    reason = b"world size 3 differs from the trainer's 2"
    trainer.accept_join().sendall(struct.pack(">BI", 1, len(reason)) + reason)
    with pytest.raises(PlaneError, match="refused the join: world size 3 differs from the trainer's 2"):
        joining.result(5)


@pytest.mark.parametrize(
    ("address", "port"), [("127.0.0.1", "x"), (None, None), ("no host\x00", 1), ("127.0.0.1", 70000)]
)
def test_an_address_that_is_none(address: Any, port: Any) -> None:
    with pytest.raises(PlaneError, match="could not join the transfer group at"):
        Rank(timeout=0.2).receiver.join(address, port, 1, 2)


@pytest.mark.parametrize("announced", [3, 5])
def test_a_mismatch_is_told_at_once_and_hangs_until_the_trainer_leaves(
    trainer: PlaneTrainer, background: Callable[..., Future[Any]], announced: int
) -> None:
    rank = join(Rank(), trainer, background)
    waiting = background(rank.broadcast, 4)
    trainer.send(b"x" * announced)
    assert rank.mismatch.wait(5)
    assert ("mismatch", f"broadcast 0: expected 4 bytes, the sender announced {announced}") in rank.events
    time.sleep(0.05)
    assert not waiting.done()
    trainer.leave()
    with pytest.raises(PlaneError, match=f"expected 4 bytes, the sender announced {announced}; then the trainer left"):
        waiting.result(5)
    assert rank.received == b""


def test_a_mismatch_ends_at_the_deadline(trainer: PlaneTrainer, background: Callable[..., Future[Any]]) -> None:
    rank = join(Rank(timeout=0.3), trainer, background)
    trainer.send(b"abc")
    with pytest.raises(PlaneError, match="gave up after 0.3 s"):
        rank.broadcast(4)


def test_a_mismatch_may_fail_at_once(trainer: PlaneTrainer, background: Callable[..., Future[Any]]) -> None:
    rank = join(Rank(timeout=60, fail_on_mismatch=True), trainer, background)
    trainer.send(b"abc")
    with pytest.raises(PlaneError, match="expected 4 bytes, the sender announced 3$"):
        rank.broadcast(4)


def test_nothing_arrives(trainer: PlaneTrainer, background: Callable[..., Future[Any]]) -> None:
    rank = join(Rank(timeout=0.2), trainer, background)
    with pytest.raises(PlaneError, match=r"broadcast 0 of 4 bytes: nothing arrived within 0.2 s"):
        rank.broadcast(4)
    assert rank.names()[-1] == "timeout"
    kind, sequence, length = struct.unpack(">BQQ", trainer.read(trainer.peers[0], 17))
    assert (kind, sequence) == (2, 0)
    assert b"nothing arrived" in trainer.read(trainer.peers[0], length)


def test_the_trainer_leaves_within_a_broadcast(trainer: PlaneTrainer, background: Callable[..., Future[Any]]) -> None:
    rank = join(Rank(), trainer, background)
    trainer.send(b"ab", announced=4)
    trainer.leave()
    with pytest.raises(PlaneError, match="broadcast 0 of 4 bytes: the trainer left"):
        rank.broadcast(4)
    assert rank.names()[-1] == "peer_gone"


def test_an_abort_carries_its_reason(trainer: PlaneTrainer, background: Callable[..., Future[Any]]) -> None:
    rank = join(Rank(), trainer, background)
    trainer.send(b"the loss is NaN", kind=2)
    with pytest.raises(PlaneError, match="the trainer aborted: the loss is NaN"):
        rank.broadcast(4)


@pytest.mark.parametrize(("kind", "sequence"), [(1, 1), (3, 0), (0, 0)])
def test_a_frame_out_of_turn(
    trainer: PlaneTrainer, background: Callable[..., Future[Any]], kind: int, sequence: int
) -> None:
    rank = join(Rank(), trainer, background)
    trainer.send(b"abcd", kind=kind, sequence=sequence)
    with pytest.raises(PlaneError, match=f"expected broadcast 0, got kind {kind} number {sequence}"):
        rank.broadcast(4)


def test_an_absurd_text_is_not_read(trainer: PlaneTrainer, background: Callable[..., Future[Any]]) -> None:
    rank = join(Rank(), trainer, background)
    trainer.send(b"", kind=2, announced=1 << 40)
    with pytest.raises(PlaneError, match="not part of the protocol"):
        rank.broadcast(4)


def test_abandoning_ends_a_broadcast(trainer: PlaneTrainer, background: Callable[..., Future[Any]]) -> None:
    rank = join(Rank(timeout=60), trainer, background)
    waiting = background(rank.broadcast, 4)
    time.sleep(0.05)
    rank.receiver.abandon()
    with pytest.raises(PlaneError, match="abandoned by the mock's owner"):
        waiting.result(5)
    assert rank.names()[-1] == "aborted"


def test_abandoning_ends_a_mismatch(trainer: PlaneTrainer, background: Callable[..., Future[Any]]) -> None:
    rank = join(Rank(timeout=60), trainer, background)
    waiting = background(rank.broadcast, 4)
    trainer.send(b"abc")
    assert rank.mismatch.wait(5)
    rank.receiver.abandon()
    with pytest.raises(PlaneError, match="abandoned"):
        waiting.result(5)


def test_abandoning_ends_a_join(trainer: PlaneTrainer, background: Callable[..., Future[Any]]) -> None:
    rank = Rank(timeout=60)
    joining = background(rank.receiver.join, "127.0.0.1", trainer.port, 1, 3)
    trainer.accept_join()
    rank.receiver.abandon()
    with pytest.raises(PlaneError, match="abandoned"):
        joining.result(5)


def test_a_rank_that_left_says_so(trainer: PlaneTrainer, background: Callable[..., Future[Any]]) -> None:
    rank = join(Rank(), trainer, background)
    rank.receiver.close()
    with pytest.raises(PlaneError, match="this rank has left its group"):
        rank.broadcast(4)
