"""Broadcasts over real sockets: whole, slow, broken off."""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from tests.support.plane_receiver import PlaneReceiver
from vime_sync.errors import Abandoned, CheckpointError, PeerGone, Stalled
from vime_sync.tcp_plane_listener import TcpPlaneListener
from vime_sync.tcp_plane_sender import TcpPlaneSender

pytestmark = pytest.mark.unit

LARGE = 16 << 20  # more than the buffers of a pair of sockets hold


def soon(seconds: float = 5.0) -> float:
    return time.monotonic() + seconds


@contextmanager
def group_of(receivers: int) -> Iterator[tuple[TcpPlaneSender, list[PlaneReceiver]]]:
    with TcpPlaneListener(receivers + 1, "127.0.0.1") as listener, ThreadPoolExecutor() as executor:
        forming = executor.submit(listener.accept, soon())
        peers = [PlaneReceiver(listener.port, rank, receivers + 1) for rank in range(1, receivers + 1)]
        for peer in peers:
            assert peer.reply() == (0, "")
        with forming.result(5.0) as sender:
            yield sender, peers
        for peer in peers:
            peer.close()


def broadcast_often(sender: TcpPlaneSender) -> None:
    for _ in range(100):  # the end of a connection may take a moment to arrive
        sender.broadcast([memoryview(bytes(1 << 20))], soon())


def test_buffers_become_one_frame_and_frames_are_numbered() -> None:
    with group_of(2) as (sender, peers):
        sender.broadcast([memoryview(b"abc"), memoryview(b""), memoryview(b"de")], soon())
        sender.broadcast([], soon())
        sender.broadcast([memoryview(b"f")], soon())
        for peer in peers:
            assert [peer.frame() for _ in range(3)] == [(1, 0, b"abcde"), (1, 1, b""), (1, 2, b"f")]


def test_a_large_frame_reaches_receivers_of_different_speed() -> None:
    data = memoryview(bytes(range(256)) * (LARGE // 256))
    with group_of(2) as (sender, peers), ThreadPoolExecutor() as executor:
        told: list[int] = []
        slow_may_go = threading.Event()

        def slow() -> bytes:
            assert slow_may_go.wait(5.0)
            return peers[1].frame()[2]

        fast = executor.submit(peers[0].frame)
        slowly = executor.submit(slow)
        sending = executor.submit(sender.broadcast, [data[:1000], data[1000:]], soon(20), lambda: False, told.append)
        assert fast.result(20)[2] == data
        slow_may_go.set()
        assert slowly.result(20) == data
        sending.result(5.0)
        assert sum(told) == LARGE


def test_a_receiver_that_leaves_in_the_middle_is_noticed_at_once() -> None:
    with group_of(2) as (sender, peers), ThreadPoolExecutor() as executor:
        executor.submit(peers[0].frame)
        sending = executor.submit(sender.broadcast, [memoryview(bytes(LARGE))], soon(30))
        peers[1].exactly(1000)
        peers[1].close()
        with pytest.raises(PeerGone, match="rank 2") as caught:
            sending.result(10.0)
        assert caught.value.rank == 2
        assert sender.closed


def test_a_receiver_that_left_between_broadcasts_is_noticed_at_the_next() -> None:
    with group_of(1) as (sender, peers):
        peers[0].close()
        with pytest.raises(PeerGone, match="rank 1 left"):
            broadcast_often(sender)


def test_an_abort_is_read_with_its_reason() -> None:
    with group_of(1) as (sender, peers), ThreadPoolExecutor() as executor:
        sending = executor.submit(sender.broadcast, [memoryview(bytes(LARGE))], soon(30))
        peers[0].exactly(17)
        peers[0].abort("broadcast 0: expected 4 bytes,\nthe sender announced 8")
        with pytest.raises(PeerGone, match="rank 1 aborted: broadcast 0: expected 4 bytes, the sender") as caught:
            sending.result(10.0)
        assert caught.value.reason == "broadcast 0: expected 4 bytes, the sender announced 8"


@pytest.mark.parametrize("said", [b"\1hello", struct.pack(">BQQ", 2, 0, 2**63) + b"x" * 70_000])
def test_other_bytes_from_a_receiver_are_the_end_of_it_and_bounded(said: bytes) -> None:
    with group_of(1) as (sender, peers), ThreadPoolExecutor() as executor:
        sending = executor.submit(sender.broadcast, [memoryview(bytes(LARGE))], soon(30))
        peers[0].sock.sendall(said)
        with pytest.raises(PeerGone) as caught:
            sending.result(10.0)
        assert len(str(caught.value)) < 1000


def test_a_receiver_that_takes_nothing_is_stalled_at_the_deadline() -> None:
    with group_of(2) as (sender, peers), ThreadPoolExecutor() as executor:
        executor.submit(peers[0].frame)
        began = time.monotonic()
        with pytest.raises(Stalled, match="rank 2 took") as caught:
            sender.broadcast([memoryview(bytes(LARGE))], soon(1.0))
        assert time.monotonic() - began < 5.0
        assert 0 < caught.value.sent < caught.value.total == LARGE + 17
        assert sender.closed


def test_another_thread_can_end_it_at_any_moment() -> None:
    with group_of(1) as (sender, peers), ThreadPoolExecutor() as executor:
        over = threading.Event()
        sending = executor.submit(sender.broadcast, [memoryview(bytes(LARGE))], soon(30), over.is_set)
        peers[0].exactly(1000)
        over.set()
        sender.wake()
        with pytest.raises(Abandoned, match="gave up after"):
            sending.result(5.0)
        with pytest.raises(EOFError):
            peers[0].exactly(LARGE)


def test_a_group_is_never_used_again() -> None:
    with group_of(1) as (sender, _):
        with pytest.raises(Abandoned):
            sender.broadcast([memoryview(b"x")], soon(), lambda: True)
        with pytest.raises(Abandoned, match="cannot be used again"):
            sender.broadcast([memoryview(b"x")], soon())


def test_leaving_between_frames_says_why() -> None:
    with group_of(1) as (sender, peers):
        sender.broadcast([memoryview(b"x")], soon())
        sender.abandon("the trainer stops")
        assert peers[0].frame() == (1, 0, b"x")
        assert peers[0].frame() == (2, 1, b"the trainer stops")
        assert peers[0].at_end()


def test_a_reset_connection_is_a_peer_gone() -> None:
    with group_of(1) as (sender, peers):
        peers[0].sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        peers[0].close()
        with pytest.raises(PeerGone):
            broadcast_often(sender)


def test_an_unmapped_page_is_an_error_and_not_a_crash(tmp_path: object) -> None:
    import mmap
    from pathlib import Path

    assert isinstance(tmp_path, Path)
    path = tmp_path / "x"
    path.write_bytes(bytes(1 << 20))
    with path.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        with path.open("r+b") as other:
            other.truncate(0)
        view = memoryview(mapped)
        with group_of(1) as (sender, _), pytest.raises(CheckpointError, match="shrank"):
            sender.broadcast([view], soon())
        view.release()
