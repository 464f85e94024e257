"""Answers that are broken off, too long, or lead elsewhere."""

from __future__ import annotations

import socket

import pytest

from tests.support.raw_server import RawServer, answer
from tests.support.transport import post, well
from vime_sync.errors import CallTimeout, ConnectError, MalformedAnswer, TransportError

pytestmark = pytest.mark.unit


def truncated(sock: socket.socket, server: RawServer) -> None:
    server.receive(sock)
    sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")


def half_closed(sock: socket.socket, server: RawServer) -> None:
    server.receive(sock)
    sock.sendall(b"HTTP/1.1 200 OK\r\n")
    sock.shutdown(socket.SHUT_WR)
    server.stopping.wait(5)


def nothing(sock: socket.socket, server: RawServer) -> None:
    server.receive(sock)


def reset(sock: socket.socket, server: RawServer) -> None:
    server.receive(sock)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")


def no_http(sock: socket.socket, server: RawServer) -> None:
    server.receive(sock)
    sock.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")


@pytest.mark.parametrize("script", [truncated, half_closed, nothing, reset, no_http])
def test_an_answer_that_does_not_become_whole_is_no_answer(script: object) -> None:
    with RawServer(script) as server:  # type: ignore[arg-type]
        with pytest.raises(TransportError) as caught:
            post(server)
        assert not isinstance(caught.value, (ConnectError, CallTimeout))
        assert len(server.requests) == 1, "a POST must never be repeated"


def test_another_program_s_request_is_not_taken_for_the_client_s() -> None:
    def with_a_stranger(sock: socket.socket, server: RawServer) -> None:
        host, _, port = server.url.removeprefix("http://").partition(":")
        if not strangers:
            with socket.create_connection((host, int(port)), timeout=5.0) as stranger:
                strangers.append(stranger)
                stranger.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\nUser-Agent: python-requests/2\r\n\r\n")
                while stranger.recv(100):
                    pass
        truncated(sock, server)

    strangers: list[socket.socket] = []
    with RawServer(with_a_stranger) as server:
        with pytest.raises(TransportError):
            post(server)
        assert (len(server.requests), server.connections) == (1, 1)


def test_an_answer_is_bounded() -> None:
    def large(sock: socket.socket, server: RawServer) -> None:
        server.receive(sock)
        sock.sendall(answer(b"z" * (10 << 20)))

    with RawServer(large) as server, pytest.raises(MalformedAnswer, match="more than") as caught:
        post(server)
    assert len(str(caught.value)) < 1000
    assert caught.value.status == 200


def test_an_answer_is_not_decompressed() -> None:
    def bomb(sock: socket.socket, server: RawServer) -> None:
        server.receive(sock)
        sock.sendall(answer(b"\x1f\x8b no gzip", extra=("Content-Encoding: gzip",)))

    with RawServer(bomb) as server:
        assert post(server).body == b"\x1f\x8b no gzip"


def test_a_redirect_is_not_followed() -> None:
    with RawServer(well) as elsewhere:

        def redirecting(sock: socket.socket, server: RawServer) -> None:
            while server.receive(sock):
                sock.sendall(answer(b"", "307 Temporary Redirect", extra=(f"Location: {elsewhere.url}/x",)))

        with RawServer(redirecting) as server:
            assert post(server).status == 307
        assert elsewhere.requests == []
