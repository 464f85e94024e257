"""Both halves of the TCP plane against each other and against bytes written down by hand."""

from __future__ import annotations

import contextlib
import select
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from conformance.plane import (
    JoinRejectedError,
    JoinTimeoutError,
    MeetingTimeoutError,
    Receiver,
    Trainer,
)

pytestmark = pytest.mark.unit


def soon(seconds: float = 5.0) -> float:
    return time.monotonic() + seconds


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(8) as executor:
        yield executor


def raw(trainer: Trainer, data: bytes) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", trainer.port), timeout=5)
    connection.sendall(data)
    return connection


def test_bytes_on_the_wire_are_those_of_the_page(pool: ThreadPoolExecutor) -> None:
    with Trainer(2) as trainer:
        # magic, rank 1, world size 2
        connection = raw(trainer, b"WTPLANE1" + b"\0\0\0\1" + b"\0\0\0\2")
        meeting = pool.submit(trainer.meet, soon())
        assert connection.recv(16) == b"\0" + b"\0\0\0\0"
        assert meeting.result(5)
        trainer.broadcast(b"abc", soon())
        trainer.broadcast(b"", soon())
        trainer.abort("no")
        expected = (
            b"\1" + bytes(8) + bytes(7) + b"\3" + b"abc"
            b"\1" + bytes(7) + b"\1" + bytes(8)
            + b"\2" + bytes(7) + b"\2" + bytes(7) + b"\2" + b"no"
        )  # fmt: skip
        received = b""
        while len(received) < len(expected):
            received += connection.recv(100)
        assert received == expected
        connection.close()


def test_broadcasts_reach_every_rank_in_order(pool: ThreadPoolExecutor) -> None:
    with Trainer(4) as trainer:
        joining = [pool.submit(Receiver.join, "127.0.0.1", trainer.port, rank, 4, soon()) for rank in (3, 1, 2)]
        assert trainer.meet(soon())
        receivers = [future.result(5) for future in joining]
        payloads = [b"", b"x", bytes(range(256)) * 4096]
        sending = pool.submit(lambda: [trainer.broadcast(data, soon()) for data in payloads])
        for receiver in receivers:
            assert [bytes(receiver.receive(len(data), soon())) for data in payloads] == payloads
        sending.result(5)
        for receiver in receivers:
            receiver.close()


def test_nobody_is_accepted_before_everybody_has_joined(pool: ThreadPoolExecutor) -> None:
    with Trainer(3) as trainer:
        first = raw(trainer, b"WTPLANE1" + b"\0\0\0\1" + b"\0\0\0\3")
        meeting = pool.submit(trainer.meet, soon())
        first.settimeout(0.1)
        with pytest.raises(TimeoutError):
            first.recv(1)
        second = pool.submit(Receiver.join, "127.0.0.1", trainer.port, 2, 3, soon())
        assert meeting.result(5)
        assert first.recv(5) == bytes(5)
        second.result(5).close()
        first.close()


@pytest.mark.parametrize(
    ("rank", "world_size", "reason"),
    [
        (1, 3, "world size 3 differs from the trainer's 2"),
        (2, 2, "rank 2 is outside 1..1"),
        (0, 2, "rank 0 is outside 1..1"),
    ],
)
def test_a_join_that_does_not_fit_is_rejected_with_both_values(
    pool: ThreadPoolExecutor, rank: int, world_size: int, reason: str
) -> None:
    with Trainer(2) as trainer:
        meeting = pool.submit(trainer.meet, soon())
        with pytest.raises(JoinRejectedError) as caught:
            Receiver.join("127.0.0.1", trainer.port, rank, world_size, soon())
        assert caught.value.reason == reason
        receiver = Receiver.join("127.0.0.1", trainer.port, 1, 2, soon())  # the group can still be made
        assert meeting.result(5)
        receiver.close()


def test_a_rank_joins_once(pool: ThreadPoolExecutor) -> None:
    text = b"rank 1 has joined already"
    with Trainer(3) as trainer:
        meeting = pool.submit(trainer.meet, soon())
        twins = [raw(trainer, b"WTPLANE1" + b"\0\0\0\1" + b"\0\0\0\3") for _ in range(2)]
        ready = select.select(twins, [], [], 5)[0]  # whichever was read second is turned away at once
        assert len(ready) == 1
        assert _all(ready[0], 100) == b"\1\0\0\0" + bytes([len(text)]) + text
        third = pool.submit(Receiver.join, "127.0.0.1", trainer.port, 2, 3, soon())
        assert meeting.result(5)
        third.result(5).close()
        for twin in twins:
            twin.close()


def _all(connection: socket.socket, most: int) -> bytes:
    received = b""
    while len(received) < most:
        part = connection.recv(most - len(received))
        if not part:
            break
        received += part
    return received


def test_foreign_bytes_are_closed_without_an_answer(pool: ThreadPoolExecutor) -> None:
    with Trainer(2) as trainer:
        meeting = pool.submit(trainer.meet, soon())
        stranger = raw(trainer, b"GET / HTTP/1.1\r\n\r\n")
        with contextlib.suppress(ConnectionResetError):  # the rest of the request was unread when the trainer closed
            assert stranger.recv(100) == b""
        receiver = Receiver.join("127.0.0.1", trainer.port, 1, 2, soon())
        assert meeting.result(5)
        receiver.close()
        stranger.close()


def test_a_meeting_ends_at_its_deadline_and_names_the_ranks(pool: ThreadPoolExecutor) -> None:
    with Trainer(3) as trainer:
        joining = pool.submit(Receiver.join, "127.0.0.1", trainer.port, 2, 3, soon(0.6))
        with pytest.raises(MeetingTimeoutError, match="ranks 2 joined, ranks 1 did not") as caught:
            trainer.meet(soon(0.3))
        assert (caught.value.joined, caught.value.missing) == ((2,), (1,))
        with pytest.raises(JoinTimeoutError):
            joining.result(5)


def test_a_meeting_ends_when_the_watched_connection_speaks() -> None:
    mine, theirs = socket.socketpair()
    with Trainer(2) as trainer, mine, theirs:
        theirs.send(b"HTTP/1.1 400")
        assert trainer.meet(soon(), mine) is False


def test_a_receiver_waits_for_a_trainer_that_comes_late(pool: ThreadPoolExecutor) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    joining = pool.submit(Receiver.join, "127.0.0.1", port, 1, 2, soon())
    with pytest.raises(JoinTimeoutError, match=f"no trainer listening at 127.0.0.1:{port}"):
        Receiver.join("127.0.0.1", port, 1, 2, soon(0.1))
    with Trainer(2, port=port) as trainer:
        assert trainer.meet(soon())
        joining.result(5).close()
