"""HTTP over real sockets, against servers that do what no library would."""

from __future__ import annotations

import socket
import threading
import time

import pytest

from tests.support.raw_server import RawServer, answer
from vime_sync import transport as transport_module
from vime_sync.calls import Call
from vime_sync.errors import CallTimeout, ConnectError, ConnectionClosed, MalformedAnswer, SyncError, TransportError
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


def well(sock: socket.socket, server: RawServer) -> None:
    while server.receive(sock):
        sock.sendall(OK)


def test_what_goes_out_and_what_comes_back() -> None:
    with RawServer(well) as server:
        transport = HttpTransport(server.url, timeouts())
        found = transport.request(UPDATE, "POST", query={"mode": "keep"}, body=b'{"a":1}')
        transport.close()
    assert found.status == 200
    assert found.body == b'{"message":"Weights updated"}'
    assert found.headers["CONTENT-TYPE"] == "application/json"
    head, _, body = server.requests[0].partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    assert lines[0] == "POST /update_weights?mode=keep HTTP/1.1"
    headers = dict(line.lower().split(": ", 1) for line in lines[1:])
    assert headers["content-type"] == "application/json"
    assert headers["content-length"] == "7"
    assert headers["user-agent"] == "vime-sync/0.1.0"
    assert headers["accept-encoding"] == "identity"
    assert "authorization" not in headers
    assert body == b'{"a":1}'


def test_a_connection_is_kept_alive() -> None:
    with RawServer(well) as server:
        transport = HttpTransport(server.url, timeouts())
        for _ in range(3):
            transport.request(UPDATE, "POST", body=b"{}")
        transport.close()
        assert server.connections == 1


def test_a_connection_is_dropped_after_a_500() -> None:
    # vLLM closes it without saying so; here the server does not, and the client must not count on either.
    def failing(sock: socket.socket, server: RawServer) -> None:
        while server.receive(sock):
            sock.sendall(answer(b"{}", "500 Internal Server Error"))

    with RawServer(failing) as server:
        transport = HttpTransport(server.url, timeouts())
        for _ in range(3):
            assert transport.request(UPDATE, "POST", body=b"{}").status == 500
        transport.close()
        assert server.connections == 3


def test_a_connection_that_was_idle_is_not_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport_module, "IDLE_SECONDS", 0.0)
    with RawServer(well) as server:
        transport = HttpTransport(server.url, timeouts())
        transport.request(UPDATE, "POST", body=b"{}")
        transport.request(UPDATE, "POST", body=b"{}")
        transport.close()
        assert server.connections == 2


def test_ipv6() -> None:
    with RawServer(well, host="::1") as server:
        assert post(server).status == 200
        assert b"\r\nHost: [::1]:" in server.requests[0]


def test_the_environment_s_proxies_are_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    with RawServer(well) as server:
        assert post(server).status == 200


def test_credentials_travel_and_are_never_shown() -> None:
    def refusing(sock: socket.socket, server: RawServer) -> None:
        server.receive(sock)

    with RawServer(refusing) as server:
        transport = HttpTransport(server.url.replace("http://", "http://user:s3cret@"), timeouts())
        with pytest.raises(ConnectionClosed) as caught:
            transport.request(UPDATE, "POST", body=b"{}")
        transport.close()
        assert b"Authorization: Basic dXNlcjpzM2NyZXQ=" in server.requests[0]
    error: BaseException | None = caught.value
    while error is not None:
        assert "s3cret" not in str(error)
        error = error.__cause__
    assert transport.engine == server.url


def test_nobody_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    transport = HttpTransport(f"http://127.0.0.1:{port}", timeouts())
    with pytest.raises(ConnectError, match="cannot connect") as caught:
        transport.request(UPDATE, "POST", body=b"{}")
    assert "bucket 3" in str(caught.value)
    assert (caught.value.route, caught.value.phase, caught.value.bucket) == ("/update_weights", "update", 2)
    assert caught.value.engine == f"http://127.0.0.1:{port}"


def test_a_name_that_does_not_resolve() -> None:
    with pytest.raises(ConnectError, match="cannot connect"):
        HttpTransport("http://name.invalid:1", timeouts()).request(UPDATE, "GET")


def drip_header(sock: socket.socket, server: RawServer) -> None:
    server.receive(sock)
    sock.sendall(b"HTTP/1.1 200 OK\r\nX-Drip: ")
    while not server.stopping.wait(0.05):
        sock.sendall(b"x")


def drip_body(sock: socket.socket, server: RawServer) -> None:
    server.receive(sock)
    sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
    while not server.stopping.wait(0.05):
        sock.sendall(b"x")


def silent(sock: socket.socket, server: RawServer) -> None:
    server.receive(sock)
    server.stopping.wait(20)


@pytest.mark.parametrize("script", [drip_header, drip_body, silent])
def test_the_total_deadline_holds_whatever_the_server_does(script: object) -> None:
    with RawServer(script) as server:  # type: ignore[arg-type]
        began = time.monotonic()
        with pytest.raises(CallTimeout) as caught:
            post(server, timeouts(total=0.4))
        assert 0.3 < time.monotonic() - began < 3.0
        assert caught.value.seconds == 0.4


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


def test_on_sent_comes_once_the_body_is_out_and_before_the_answer() -> None:
    sent = threading.Event()
    order: list[str] = []
    body = b"x" * (3 << 20)

    def waiting(sock: socket.socket, server: RawServer) -> None:
        received = server.receive(sock)
        assert received.endswith(body)
        assert sent.wait(5.0), "the server had the whole request before the client said that it was out"
        order.append("answered")
        sock.sendall(OK)

    def note() -> None:
        order.append("sent")
        sent.set()

    with RawServer(waiting) as server:
        transport = HttpTransport(server.url, timeouts())
        transport.request(UPDATE, "POST", body=body, on_sent=note)
        transport.close()
    assert order == ["sent", "answered"]


def test_on_sent_does_not_come_when_the_body_did_not_go_out() -> None:
    calls: list[None] = []

    def hasty(sock: socket.socket, _server: RawServer) -> None:
        sock.recv(1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")

    with RawServer(hasty) as server:
        transport = HttpTransport(server.url, timeouts())
        with pytest.raises(TransportError):
            transport.request(UPDATE, "POST", body=b"x" * (64 << 20), on_sent=lambda: calls.append(None))
        transport.close()
    assert calls == []


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
