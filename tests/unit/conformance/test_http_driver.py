"""The suite's HTTP client against a socket that says exactly what each test wants."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest

from conformance.http_driver import Address, Connection, NoAnswerError, StaleConnectionError, TargetUrlError

pytestmark = pytest.mark.unit


def soon(seconds: float = 5.0) -> float:
    return time.monotonic() + seconds


@contextmanager
def serving(conversations: Sequence[Sequence[bytes | None]]) -> Iterator[tuple[Address, list[bytes]]]:
    """Each connection reads one request before each answer; None closes it. The requests are kept."""
    heard: list[bytes] = []
    ended = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(5)

        def serve() -> None:
            for answers in conversations:
                connection, _ = listener.accept()
                connection.settimeout(5)
                with connection:
                    for answer in answers:
                        if answer is None:
                            break
                        heard.append(connection.recv(65536))
                        connection.sendall(answer)
                    else:
                        ended.wait(5)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield Address.of(f"http://127.0.0.1:{listener.getsockname()[1]}"), heard
        finally:
            ended.set()
            thread.join(10)


OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"


def test_the_bytes_sent_are_ours() -> None:
    with serving([[OK]]) as (address, heard):
        connection = Connection(address)
        connection.send("POST", "/x?a=1", {"Content-Type": "text/plain"}, b"{bad", soon())
        answer = connection.read(soon())
        connection.close()
    assert (answer.status, answer.headers["content-type"], answer.body) == (200, "application/json", b"{}")
    assert heard == [
        f"POST /x?a=1 HTTP/1.1\r\nHost: 127.0.0.1:{address.port}\r\n".encode()
        + b"Content-Type: text/plain\r\nContent-Length: 4\r\n\r\n{bad"
    ]


@pytest.mark.parametrize(
    ("raw", "body"),
    [
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n", b"abcde"),
        (b"HTTP/1.1 204 No Content\r\n\r\n", b""),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", b""),
    ],
)
def test_bodies_of_every_framing(raw: bytes, body: bytes) -> None:
    with serving([[raw]]) as (address, _):
        connection = Connection(address)
        connection.send("GET", "/", {}, None, soon())
        assert connection.read(soon()).body == body
        assert not connection.closed_within(0.01)
        connection.close()


def test_a_body_without_length_ends_with_the_connection() -> None:
    with serving([[b"HTTP/1.0 500 Oops\r\n\r\nbroken", None]]) as (address, _):
        connection = Connection(address)
        connection.send("GET", "/", {}, None, soon())
        answer = connection.read(soon())
        assert (answer.status, answer.body) == (500, b"broken")
        connection.close()


def test_a_head_answer_has_no_body() -> None:
    with serving([[b"HTTP/1.1 405 No\r\nContent-Length: 31\r\n\r\n", OK]]) as (address, _):
        connection = Connection(address)
        connection.send("HEAD", "/", {}, None, soon())
        assert connection.read(soon(), head=True).body == b""
        connection.send("GET", "/", {}, None, soon())
        assert connection.read(soon()).body == b"{}"
        connection.close()


def test_a_close_after_an_answer_is_seen_at_once_or_by_the_next_request() -> None:
    with serving([[OK, None], [OK, None]]) as (address, _):
        connection = Connection(address)
        connection.send("GET", "/", {}, None, soon())
        connection.read(soon())
        assert connection.closed_within(5)
        connection.send("GET", "/", {}, None, soon())
        connection.read(soon())
        assert not connection.silent_for(5)  # the end has arrived
        with pytest.raises(StaleConnectionError):
            connection.send("GET", "/", {}, None, soon())


@pytest.mark.parametrize(
    ("answers", "text"),
    [
        ([b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc", None], "before its answer was complete"),
        ([b"", None], "before its answer was complete"),
        ([b"SSH-2.0-x\r\n\r\n"], "not an HTTP answer: 'SSH-2.0-x'"),
        ([b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n"], "not an HTTP answer: bad length"),
        ([b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"], "not an HTTP answer: bad length"),
    ],
)
def test_what_is_no_answer_says_why(answers: list[bytes | None], text: str) -> None:
    with serving([answers]) as (address, _):
        connection = Connection(address)
        connection.send("GET", "/", {}, None, soon())
        with pytest.raises(NoAnswerError, match=text):
            connection.read(soon())


def test_a_silent_server_is_left_at_the_deadline_even_when_it_drips() -> None:
    with serving([[b"HTTP/1.1 200 OK\r\nContent-Le"]]) as (address, _):
        connection = Connection(address)
        connection.send("GET", "/", {}, None, soon())
        started = time.monotonic()
        with pytest.raises(NoAnswerError, match="no answer before the deadline"):
            connection.read(soon(0.1))
        assert time.monotonic() - started < 3


def test_nobody_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(NoAnswerError, match="cannot send to the server"):
        Connection(Address("127.0.0.1", port, "")).send("GET", "/", {}, None, soon())


@pytest.mark.parametrize("url", ["https://host:1", "host:8000", "http://", "http://host:99999", json.dumps({})])
def test_urls_that_cannot_be_used(url: str) -> None:
    with pytest.raises(TargetUrlError, match=r"is not of the form http://HOST:PORT"):
        Address.of(url)


def test_urls() -> None:
    assert Address.of("http://[::1]:8000/base/") == Address("::1", 8000, "/base")
    assert Address.of("http://engine") == Address("engine", 80, "")
