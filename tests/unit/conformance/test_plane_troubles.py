"""What each half of the TCP plane does when the other one does not keep to it; and where packed buffers are cut."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from conformance.plane import (
    BroadcastTimeoutError,
    MismatchError,
    PeerAbortedError,
    PeerGoneError,
    ProtocolError,
    Receiver,
    Trainer,
    packed_groups,
)

pytestmark = pytest.mark.unit


def soon(seconds: float = 5.0) -> float:
    return time.monotonic() + seconds


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(8) as executor:
        yield executor


def pair(pool: ThreadPoolExecutor, trainer: Trainer) -> Receiver:
    joining = pool.submit(Receiver.join, "127.0.0.1", trainer.port, 1, 2, soon())
    assert trainer.meet(soon())
    return joining.result(5)


@pytest.mark.parametrize("announced", [3, 5])
def test_a_mismatch_is_reported_at_once_and_fails_at_the_deadline(pool: ThreadPoolExecutor, announced: int) -> None:
    said: list[str] = []
    heard = threading.Event()

    def report(line: str) -> None:
        said.append(line)
        heard.set()

    with Trainer(2) as trainer:
        joining = pool.submit(Receiver.join, "127.0.0.1", trainer.port, 1, 2, soon(), report)
        assert trainer.meet(soon())
        receiver = joining.result(5)
        trainer.broadcast(bytes(announced), soon())
        receiving = pool.submit(receiver.receive, 4, soon(0.5))
        assert heard.wait(0.4)
        assert not receiving.done()
        with pytest.raises(MismatchError) as caught:
            receiving.result(5)
        assert said == [f"broadcast 0: expected 4 bytes, the sender announced {announced}"] == [str(caught.value)]
        receiver.close()


def test_a_mismatch_may_fail_at_once(pool: ThreadPoolExecutor) -> None:
    with Trainer(2) as trainer:
        receiver = pair(pool, trainer)
        trainer.broadcast(b"12345", soon())
        started = time.monotonic()
        with pytest.raises(MismatchError):
            receiver.receive(4, soon(30), on_mismatch="fail")
        assert time.monotonic() - started < 5
        receiver.close()


def test_a_mismatch_ends_when_the_peer_leaves(pool: ThreadPoolExecutor) -> None:
    with Trainer(2) as trainer:
        receiver = pair(pool, trainer)
        trainer.broadcast(bytes(3_000_000), soon())
        receiving = pool.submit(receiver.receive, 4, soon(30))
        trainer.close()
        with pytest.raises(MismatchError):
            receiving.result(5)
        receiver.close()


def test_what_a_receiver_says_when_nothing_or_too_little_comes(pool: ThreadPoolExecutor) -> None:
    with Trainer(2) as trainer:
        receiver = pair(pool, trainer)
        with pytest.raises(BroadcastTimeoutError, match="broadcast 0 of 8 bytes did not arrive before the deadline"):
            receiver.receive(8, soon(0.05))
        receiver.close()
    with Trainer(2) as trainer:
        receiver = pair(pool, trainer)
        trainer.broadcast(b"12345678", soon(), only=3)
        trainer.close()
        with pytest.raises(PeerGoneError, match="the peer has gone while broadcast 0 of 8 bytes was awaited"):
            receiver.receive(8, soon())
        receiver.close()
    with Trainer(2) as trainer:
        receiver = pair(pool, trainer)
        trainer.abort("out of memory")
        with pytest.raises(PeerAbortedError, match="the peer aborted: out of memory"):
            receiver.receive(8, soon())
        receiver.close()


@pytest.mark.parametrize(
    ("frame", "text"),
    [
        (b"\3" + bytes(16), "frame of unknown kind 3"),
        (b"\1" + bytes(7) + b"\4" + bytes(8), "frame 4 where frame 0 was due"),
        (b"\2" + bytes(8) + b"\xff" * 8, "abort frame with 18446744073709551615 bytes of text"),
    ],
)
def test_frames_that_the_wire_format_does_not_know(frame: bytes, text: str) -> None:
    mine, theirs = socket.socketpair()
    with mine, theirs:
        theirs.sendall(frame)
        with pytest.raises(ProtocolError, match=text):
            Receiver(mine, lambda _: None).receive(0, soon())


def test_a_sender_finds_that_its_receiver_left(pool: ThreadPoolExecutor) -> None:
    with Trainer(2) as trainer:
        receiver = pair(pool, trainer)
        receiver.abort("restarting")
        receiver.close()

        def broadcast_often() -> None:
            for _ in range(50):
                trainer.broadcast(bytes(100_000), soon(1))

        with pytest.raises(PeerGoneError, match="went to rank 1"):
            broadcast_often()


@pytest.mark.parametrize(
    ("sizes", "limit", "groups"),
    [
        ([16, 16, 8, 24], 16, [[0, 1], [2, 3]]),
        ([32, 32], 64, [[0, 1]]),
        ([32, 32, 1], 64, [[0, 1, 2]]),
        ([33, 32, 1], 64, [[0, 1], [2]]),
        ([100], 64, [[0]]),
        ([10, 100, 10], 64, [[0, 1], [2]]),
        ([0, 0], 64, [[0, 1]]),
        ([1, 1], 0, [[0], [1]]),
        ([0, 1], 0, [[0, 1]]),
        ([], 64, []),
    ],
)
def test_a_buffer_is_sent_once_the_sum_exceeds_it(sizes: list[int], limit: int, groups: list[list[int]]) -> None:
    assert packed_groups(sizes, limit) == groups
