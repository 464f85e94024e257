"""Forming a group over real sockets."""

from __future__ import annotations

import socket
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from tests.support.plane_receiver import PlaneReceiver
from vime_sync import tcp_plane_listener
from vime_sync.errors import Abandoned, NeverJoined, SettingError
from vime_sync.tcp_plane_listener import TcpPlaneListener
from vime_sync.tcp_plane_sender import TcpPlaneSender

pytestmark = pytest.mark.unit


def soon(seconds: float = 5.0) -> float:
    return time.monotonic() + seconds


def accepting(listener: TcpPlaneListener, executor: ThreadPoolExecutor) -> Future[TcpPlaneSender]:
    return executor.submit(listener.accept, soon())


def test_every_rank_is_accepted_at_once_when_the_last_has_joined() -> None:
    with TcpPlaneListener(3, "127.0.0.1") as listener, ThreadPoolExecutor() as executor:
        group = accepting(listener, executor)
        second = PlaneReceiver(listener.port, 2, 3)
        second.sock.settimeout(0.2)
        with pytest.raises(TimeoutError):
            second.reply()
        second.sock.settimeout(5.0)
        first = PlaneReceiver(listener.port, 1, 3)
        assert first.reply() == (0, "")
        assert second.reply() == (0, "")
        group.result(5.0).close()
        assert first.at_end()
        for receiver in (first, second):
            receiver.close()


def test_bad_joins_are_rejected_at_once_and_do_not_end_the_accept() -> None:
    with TcpPlaneListener(3, "127.0.0.1") as listener, ThreadPoolExecutor() as executor:
        group = accepting(listener, executor)
        receivers = [PlaneReceiver(listener.port, 1, 3)]
        for rank, world_size, reason in [
            (1, 4, "world size 4 differs from the trainer's 3"),
            (3, 3, "rank 3 is outside 1..2"),
            (0, 3, "rank 0 is outside 1..2"),
            (1, 3, "rank 1 has joined already"),
        ]:
            bad = PlaneReceiver(listener.port, rank, world_size)
            assert bad.reply() == (1, reason)
            assert bad.at_end()
            receivers.append(bad)
        stranger = PlaneReceiver(listener.port, 2, 3, magic=b"GET / HT")
        assert stranger.at_end()
        receivers += [stranger, PlaneReceiver(listener.port, 2, 3)]
        assert receivers[-1].reply() == (0, "")
        group.result(5.0).close()
        for receiver in receivers:
            receiver.close()


def test_a_join_may_come_in_pieces_and_beside_silent_strangers() -> None:
    with TcpPlaneListener(2, "127.0.0.1") as listener, ThreadPoolExecutor() as executor:
        group = accepting(listener, executor)
        with socket.create_connection(("127.0.0.1", listener.port)):
            slow = socket.create_connection(("127.0.0.1", listener.port), timeout=5.0)
            slow.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for piece in (b"WTPL", b"ANE1\0\0", b"\0\1\0\0\0", b"\2"):
                slow.sendall(piece)
            assert slow.recv(5) == b"\0\0\0\0\0"
            group.result(5.0).close()
            slow.close()


def test_a_receiver_that_left_before_the_reply_may_join_again() -> None:
    with TcpPlaneListener(3, "127.0.0.1") as listener, ThreadPoolExecutor() as executor:
        group = accepting(listener, executor)
        PlaneReceiver(listener.port, 1, 3).close()
        deadline = soon()
        again = PlaneReceiver(listener.port, 1, 3)
        again.sock.settimeout(0.1)
        while time.monotonic() < deadline:
            try:
                assert again.reply() == (1, "rank 1 has joined already")
            except TimeoutError:
                break  # it waits for the other rank
            again = PlaneReceiver(listener.port, 1, 3)
            again.sock.settimeout(0.1)
        again.sock.settimeout(5.0)
        other = PlaneReceiver(listener.port, 2, 3)
        assert again.reply() == (0, "")
        group.result(5.0).close()
        again.close()
        other.close()


def test_strangers_beyond_a_number_push_out_the_oldest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tcp_plane_listener, "MOST_PENDING", 2)
    with TcpPlaneListener(2, "127.0.0.1") as listener, ThreadPoolExecutor() as executor:
        group = accepting(listener, executor)
        strangers = [socket.create_connection(("127.0.0.1", listener.port), timeout=5.0) for _ in range(3)]
        assert strangers[0].recv(1) == b""
        receiver = PlaneReceiver(listener.port, 1, 2)
        assert receiver.reply() == (0, "")
        group.result(5.0).close()
        receiver.close()
        for stranger in strangers:
            stranger.close()


def test_at_the_deadline_it_says_who_was_there() -> None:
    with TcpPlaneListener(4, "127.0.0.1") as listener, ThreadPoolExecutor() as executor:
        group = executor.submit(listener.accept, soon(0.4))
        there = PlaneReceiver(listener.port, 2, 4)
        bad = PlaneReceiver(listener.port, 9, 4)
        with pytest.raises(NeverJoined, match=r"joined: 2, missing: 1, 3, rejected: rank 9 is outside") as caught:
            group.result(5.0)
        assert (caught.value.joined, caught.value.missing) == ((2,), (1, 3))
        assert there.at_end()
        there.close()
        bad.close()


def test_it_can_be_given_up_from_another_thread() -> None:
    given_up = threading.Event()
    with TcpPlaneListener(2, "127.0.0.1") as listener, ThreadPoolExecutor() as executor:
        group = executor.submit(listener.accept, soon(20), given_up.is_set)
        given_up.set()
        listener.wake()
        with pytest.raises(Abandoned, match="0 of 1"):
            group.result(5.0)


def test_port_zero_is_a_free_one_and_a_taken_one_an_error() -> None:
    with TcpPlaneListener(2, "127.0.0.1") as first:
        assert first.port > 0
        with pytest.raises(SettingError, match=f"port {first.port}") as caught:
            TcpPlaneListener(2, "127.0.0.1", first.port)
        assert "--master-port" in (caught.value.next_step or "")


def test_an_address_of_another_machine_is_an_error_that_names_the_way_out() -> None:
    with pytest.raises(SettingError, match=r"198\.51\.100\.1") as caught:
        TcpPlaneListener(2, "198.51.100.1")
    assert "--bind-address" in (caught.value.next_step or "")


@pytest.mark.parametrize("address", ["", "0.0.0.0", "::1"])
def test_other_addresses_to_listen_on(address: str) -> None:
    with TcpPlaneListener(2, address) as listener:
        host = "::1" if address == "::1" else "127.0.0.1"
        socket.create_connection((host, listener.port), timeout=5.0).close()


def test_the_port_can_be_taken_again_at_once() -> None:
    with TcpPlaneListener(2, "127.0.0.1") as listener, ThreadPoolExecutor() as executor:
        group = accepting(listener, executor)
        receiver = PlaneReceiver(listener.port, 1, 2)
        receiver.reply()
        group.result(5.0).close()
        receiver.close()
    TcpPlaneListener(2, "127.0.0.1", listener.port).close()


@pytest.mark.parametrize(("world_size", "port"), [(1, 0), (0, 0), (2, -1), (2, 65536)])
def test_bad_arguments(world_size: int, port: int) -> None:
    with pytest.raises(SettingError):
        TcpPlaneListener(world_size, "127.0.0.1", port)
