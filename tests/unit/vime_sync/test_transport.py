"""HTTP over real sockets: what goes out, what comes back, which connection is used."""

from __future__ import annotations

import socket
import threading

import pytest

from tests.support.raw_server import RawServer, answer
from tests.support.transport import OK, UPDATE, patient, post, well
from vime_sync import transport as transport_module
from vime_sync.errors import ConnectError, ConnectionClosed, TransportError
from vime_sync.transport import HttpTransport

pytestmark = pytest.mark.unit


def test_what_goes_out_and_what_comes_back() -> None:
    with RawServer(well) as server:
        transport = HttpTransport(server.url, patient())
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
        transport = HttpTransport(server.url, patient())
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
        transport = HttpTransport(server.url, patient())
        for _ in range(3):
            assert transport.request(UPDATE, "POST", body=b"{}").status == 500
        transport.close()
        assert server.connections == 3


def test_a_connection_that_was_idle_is_not_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport_module, "IDLE_SECONDS", 0.0)
    with RawServer(well) as server:
        transport = HttpTransport(server.url, patient())
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
        transport = HttpTransport(server.url.replace("http://", "http://user:s3cret@"), patient())
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
    transport = HttpTransport(f"http://127.0.0.1:{port}", patient())
    with pytest.raises(ConnectError, match="cannot connect") as caught:
        transport.request(UPDATE, "POST", body=b"{}")
    assert "bucket 3" in str(caught.value)
    assert (caught.value.route, caught.value.phase, caught.value.bucket) == ("/update_weights", "update", 2)
    assert caught.value.engine == f"http://127.0.0.1:{port}"


def test_a_name_that_does_not_resolve() -> None:
    with pytest.raises(ConnectError, match="cannot connect"):
        HttpTransport("http://name.invalid:1", patient()).request(UPDATE, "GET")


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
        transport = HttpTransport(server.url, patient())
        transport.request(UPDATE, "POST", body=body, on_sent=note)
        transport.close()
    assert order == ["sent", "answered"]


def test_on_sent_does_not_come_when_the_body_did_not_go_out() -> None:
    calls: list[None] = []

    def hasty(sock: socket.socket, _server: RawServer) -> None:
        sock.recv(1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")

    with RawServer(hasty) as server:
        transport = HttpTransport(server.url, patient())
        with pytest.raises(TransportError):
            transport.request(UPDATE, "POST", body=b"x" * (64 << 20), on_sent=lambda: calls.append(None))
        transport.close()
    assert calls == []
