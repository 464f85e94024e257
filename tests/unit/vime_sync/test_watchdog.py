"""Shutting a socket from outside."""

from __future__ import annotations

import socket
import threading

import pytest

from vime_sync.watchdog import Watchdog

pytestmark = pytest.mark.unit


@pytest.fixture
def pair() -> tuple[socket.socket, socket.socket]:
    left, right = socket.socketpair()
    left.settimeout(5.0)
    return left, right


def close(pair: tuple[socket.socket, socket.socket]) -> None:
    for sock in pair:
        sock.close()


def test_a_blocked_read_ends_at_the_deadline(pair: tuple[socket.socket, socket.socket]) -> None:
    with Watchdog(0.1) as watchdog:
        watchdog.attach(pair[0])
        assert pair[0].recv(1) == b""
        assert (watchdog.expired, watchdog.cancelled) == (True, False)
    close(pair)


def test_a_blocked_read_ends_when_it_is_cancelled(pair: tuple[socket.socket, socket.socket]) -> None:
    with Watchdog(60.0) as watchdog:
        watchdog.attach(pair[0])
        canceller = threading.Thread(target=watchdog.cancel)
        canceller.start()
        assert pair[0].recv(1) == b""
        canceller.join()
        assert (watchdog.expired, watchdog.cancelled) == (False, True)
    close(pair)


def test_a_socket_that_comes_too_late_is_shut_at_once(pair: tuple[socket.socket, socket.socket]) -> None:
    with Watchdog(60.0) as watchdog:
        watchdog.cancel()
        watchdog.attach(pair[0])
        assert pair[0].recv(1) == b""
    close(pair)


def test_only_the_last_socket_is_watched_and_none_afterwards(pair: tuple[socket.socket, socket.socket]) -> None:
    other = socket.socketpair()
    with Watchdog(60.0) as watchdog:
        watchdog.attach(other[0])
        watchdog.attach(pair[0])
    watchdog.cancel()
    pair[1].sendall(b"x")
    other[1].sendall(b"y")
    assert (pair[0].recv(1), other[0].recv(1)) == (b"x", b"y")
    close(pair)
    close(other)
