"""Calls that end although the server does not end them."""

from __future__ import annotations

import socket
import threading
import time

import pytest

from tests.support.raw_server import RawServer, answer
from vime_sync.calls import Call
from vime_sync.errors import CallTimeout, ConnectionClosed, SyncError
from vime_sync.timeouts import Timeouts
from vime_sync.transport import HttpTransport, Response

pytestmark = pytest.mark.unit

UPDATE = Call("/update_weights", "", "update", 2)
OK = answer(b'{"message":"Weights updated"}')


def timeouts(total: float = 5.0, read: float = 5.0) -> Timeouts:
    return Timeouts(connect=2.0, read=read, total=total, quick=total, grace=1.0)


def post(server: RawServer, limits: Timeouts | None = None, body: bytes = b"{}") -> Response:
    transport = HttpTransport(server.url, limits or timeouts())
    try:
        return transport.request(UPDATE, "POST", body=body)
    finally:
        transport.close()


def drip_header(sock: socket.socket, server: RawServer) -> None:
    server.receive(sock)
    sock.sendall(b"HTTP/1.1 200 OK\r\nX-Drip: ")
    while not server.stopping.wait(0.05):
        sock.sendall(b"x")


def drip_header_after_the_length(sock: socket.socket, server: RawServer) -> None:
    # Once the socket is shut, this looks like a whole answer: status, length, and a head that ends with the stream.
    server.receive(sock)
    sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX-Drip: ")
    while not server.stopping.wait(0.05):
        sock.sendall(b"x")


def drip_on_a_kept_connection(sock: socket.socket, server: RawServer) -> None:
    if len(server.requests) == 0:
        server.receive(sock)
        sock.sendall(OK)
    drip_header(sock, server)


def drip_body(sock: socket.socket, server: RawServer) -> None:
    server.receive(sock)
    sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
    while not server.stopping.wait(0.05):
        sock.sendall(b"x")


def silent(sock: socket.socket, server: RawServer) -> None:
    server.receive(sock)
    server.stopping.wait(20)


@pytest.mark.parametrize("script", [drip_header, drip_header_after_the_length, drip_body, silent])
def test_the_total_deadline_holds_whatever_the_server_does(script: object) -> None:
    with RawServer(script) as server:  # type: ignore[arg-type]
        began = time.monotonic()
        with pytest.raises(CallTimeout) as caught:
            post(server, timeouts(total=0.4))
        assert 0.3 < time.monotonic() - began < 3.0
        assert caught.value.seconds == 0.4


def test_the_total_deadline_holds_on_a_connection_that_was_kept() -> None:
    with RawServer(drip_on_a_kept_connection) as server:
        transport = HttpTransport(server.url, timeouts(total=0.4))
        transport.request(UPDATE, "POST", body=b"{}")
        began = time.monotonic()
        with pytest.raises(CallTimeout):
            transport.request(UPDATE, "POST", body=b"{}")
        assert time.monotonic() - began < 3.0
        assert server.connections == 1
        transport.close()


def test_the_total_deadline_holds_while_the_request_is_sent() -> None:
    def deaf(_sock: socket.socket, server: RawServer) -> None:
        server.stopping.wait(20)

    with RawServer(deaf) as server:
        began = time.monotonic()
        with pytest.raises(CallTimeout):
            post(server, timeouts(total=0.4), body=b"x" * (64 << 20))
        assert time.monotonic() - began < 5.0


def test_the_read_deadline_holds_between_two_pieces() -> None:
    with RawServer(silent) as server, pytest.raises(CallTimeout) as caught:
        post(server, timeouts(total=20.0, read=0.3))
    assert caught.value.seconds == 0.3


def test_abort_ends_a_call_from_another_thread() -> None:
    with RawServer(silent) as server:
        transport = HttpTransport(server.url, timeouts(total=20.0, read=20.0))
        caught: list[SyncError] = []

        def call() -> None:
            try:
                transport.request(UPDATE, "POST", body=b"{}", on_sent=sent.set)
            except SyncError as error:
                caught.append(error)

        sent = threading.Event()
        thread = threading.Thread(target=call)
        thread.start()
        assert sent.wait(5.0)
        transport.abort()
        thread.join(5.0)
        assert not thread.is_alive()
        assert isinstance(caught[0], ConnectionClosed)
        assert "given up" in str(caught[0])
