"""A TCP server that does what a test scripts, byte by byte: for answers that no HTTP library would send."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable
from types import TracebackType

CLIENT = b"\r\nuser-agent: vime-sync/"
Script = Callable[[socket.socket, "RawServer"], None]


def read_request(sock: socket.socket) -> bytes:
    """One request with its body, by Content-Length; what came, when the client leaves first."""
    data = b""
    while b"\r\n\r\n" not in data:
        piece = sock.recv(65536)
        if not piece:
            return data
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    length = 0
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length":
            length = int(value)
    while len(body) < length:
        piece = sock.recv(65536)
        if not piece:
            break
        body += piece
    return head + b"\r\n\r\n" + body


def answer(
    body: bytes, status: str = "200 OK", content_type: str = "application/json", extra: tuple[str, ...] = ()
) -> bytes:
    """A whole answer with its length."""
    lines = [f"HTTP/1.1 {status}", f"Content-Type: {content_type}", f"Content-Length: {len(body)}", *extra]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


class RawServer:
    """Runs `script(connection, server)` for every connection, on threads.

    `requests` holds what `receive` has read, `connections` says on how many connections. Only the client under test is
    counted: a stranger comes, now and then, from another test run on the machine that waits for a server of its own on
    a port that was free a moment ago, and asks every few milliseconds whether it is there.
    """

    def __init__(self, script: Script, host: str = "127.0.0.1") -> None:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._listener = socket.create_server((host, 0), family=family)
        self._script = script
        self._connections: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self.requests: list[bytes] = []
        self._heard: set[socket.socket] = set()
        self.stopping = threading.Event()
        port = self._listener.getsockname()[1]
        self.url = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
        self._acceptor = threading.Thread(target=self._accept, daemon=True)

    @property
    def connections(self) -> int:
        """On how many connections the client has sent a request."""
        return len(self._heard)

    def receive(self, sock: socket.socket) -> bytes:
        """Reads one request and remembers it. A stranger's ends the script, as an end of the stream does."""
        request = read_request(sock)
        if not request:
            return request
        if CLIENT not in request.partition(b"\r\n\r\n")[0].lower():
            raise ConnectionAbortedError("a stranger")
        self._heard.add(sock)
        self.requests.append(request)
        return request

    def __enter__(self) -> RawServer:
        self._acceptor.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stopping.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for sock in self._connections:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        for thread in [self._acceptor, *self._threads]:
            thread.join(5.0)
            assert not thread.is_alive()

    def _accept(self) -> None:
        while not self.stopping.is_set():
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            self._connections.append(sock)
            thread = threading.Thread(target=self._serve, args=(sock,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, sock: socket.socket) -> None:
        with sock, contextlib.suppress(OSError):
            self._script(sock, self)
