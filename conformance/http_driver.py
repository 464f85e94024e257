"""HTTP/1.1 as the suite needs it: our exact bytes, a total deadline, and whether the server closed afterwards."""

from __future__ import annotations

import select
import socket
import time
from dataclasses import dataclass
from urllib.parse import urlsplit

_RECEIVE_BYTES = 65536
_QUICK_ACK: int | None = getattr(socket, "TCP_QUICKACK", None)  # Linux alone has it


class NoAnswerError(RuntimeError):
    """The server gave no complete answer: silent until the deadline, closed, reset or unreachable."""


class StaleConnectionError(RuntimeError):
    """The server had closed the connection after its previous answer, so this request was never read."""


class TargetUrlError(ValueError):
    """The target's URL cannot be used."""

    def __init__(self, url: str) -> None:
        super().__init__(f"target URL {url!r} is not of the form http://HOST:PORT")
        self.url = url


@dataclass(frozen=True)
class Answer:
    """A response: status, headers by lower-case name, body bytes."""

    status: int
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True)
class Address:
    """Host, port and path prefix of a target. Raises TargetUrlError for anything but plain HTTP."""

    host: str
    port: int
    prefix: str

    @classmethod
    def of(cls, url: str) -> Address:
        """Parses ``http://host[:port][/prefix]``."""
        try:
            parts = urlsplit(url)
            port = parts.port or 80
        except ValueError as error:
            raise TargetUrlError(url) from error
        if parts.scheme != "http" or not parts.hostname:
            raise TargetUrlError(url)
        return cls(parts.hostname, port, parts.path.rstrip("/"))


class Connection:
    """One keep-alive connection, opened when first used. Deadlines are values of ``time.monotonic()``."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._socket: socket.socket | None = None
        self._answered = False

    def send(self, method: str, path: str, headers: dict[str, str], body: bytes | None, deadline: float) -> None:
        """Writes one request. Raises NoAnswerError or StaleConnectionError."""
        if self.closed_within(0):
            raise StaleConnectionError
        host = f"[{self._address.host}]" if ":" in self._address.host else self._address.host
        lines = [f"{method} {self._address.prefix}{path} HTTP/1.1", f"Host: {host}:{self._address.port}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        if body is not None:
            lines.append(f"Content-Length: {len(body)}")
        message = "\r\n".join([*lines, "", ""]).encode() + (body or b"")
        try:
            if self._socket is None:
                endpoint = (self._address.host, self._address.port)
                self._socket = socket.create_connection(endpoint, timeout=_left(deadline))
                self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._answered = False
            self._socket.settimeout(_left(deadline))
            self._socket.sendall(message)
        except OSError as error:
            stale = self._answered
            self.close()
            if stale:
                raise StaleConnectionError from error
            raise NoAnswerError(f"cannot send to the server: {error}") from error

    def read(self, deadline: float, head: bool = False) -> Answer:
        """Reads one whole response (to a HEAD request if ``head``). Raises NoAnswerError or StaleConnectionError."""
        received = bytearray()
        while True:
            answer = self._parse(received, head)
            if answer is not None:
                self._answered = True
                return answer
            try:
                part = self._receive(deadline)
            except OSError as error:
                stale = self._answered and not received and not isinstance(error, TimeoutError)
                self.close()
                if stale:
                    raise StaleConnectionError from error
                what = "no answer before the deadline" if isinstance(error, TimeoutError) else f"no answer: {error}"
                raise NoAnswerError(what) from error
            if not part:
                stale = self._answered and not received
                self.close()
                if stale:
                    raise StaleConnectionError
                answer = _parsed(received, head, ended=True)
                if answer is None:
                    raise NoAnswerError("the server closed the connection before its answer was complete")
                return answer
            received += part

    def _parse(self, received: bytearray, head: bool) -> Answer | None:
        try:
            return _parsed(received, head, ended=False)
        except NoAnswerError:
            self.close()
            raise

    def _receive(self, deadline: float) -> bytes:
        if self._socket is None:
            raise ConnectionError("the connection is closed")
        self._socket.settimeout(_left(deadline))
        if _QUICK_ACK is not None:
            # Servers write head and body apart; without this the second write waits 40 ms for our delayed ACK.
            self._socket.setsockopt(socket.IPPROTO_TCP, _QUICK_ACK, 1)
        return self._socket.recv(_RECEIVE_BYTES)

    @property
    def socket(self) -> socket.socket | None:
        """The open socket, to wait on it beside others."""
        return self._socket

    def silent_for(self, seconds: float) -> bool:
        """Whether nothing arrives and nothing ends within ``seconds``."""
        return self._socket is not None and not select.select([self._socket], [], [], seconds)[0]

    def closed_within(self, seconds: float) -> bool:
        """Whether the server closes an idle connection within ``seconds``; then it is closed here too."""
        if self._socket is None or not select.select([self._socket], [], [], seconds)[0]:
            return False
        try:
            self._socket.setblocking(False)
            ended = self._socket.recv(1, socket.MSG_PEEK) == b""
        except BlockingIOError:
            return False
        except OSError:
            ended = True
        if ended:
            self.close()
        return ended

    def close(self) -> None:
        """Closes this side."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None


def _left(deadline: float) -> float:
    remaining = deadline - time.monotonic()
    if remaining <= 0:
        raise TimeoutError
    return remaining


def _parsed(received: bytearray, head: bool, ended: bool) -> Answer | None:
    """The response in ``received``, or None while it is not complete. Raises NoAnswerError when it is not HTTP."""
    top, separator, rest = bytes(received).partition(b"\r\n\r\n")
    if not separator:
        return None
    status_line, *header_lines = top.decode("latin-1").split("\r\n")
    fields = status_line.split(" ", 2)
    if not fields[0].startswith("HTTP/1.") or len(fields) < 2 or not fields[1].isdigit():
        raise NoAnswerError(f"not an HTTP answer: {status_line[:80]!r}")
    status = int(fields[1])
    headers: dict[str, str] = {}
    for line in header_lines:
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    try:
        body = _body(status, headers, rest, head, ended)
    except ValueError as error:
        raise NoAnswerError(f"not an HTTP answer: bad length ({error})") from error
    return None if body is None else Answer(status, headers, body)


def _body(status: int, headers: dict[str, str], rest: bytes, head: bool, ended: bool) -> bytes | None:
    if head or status in (204, 304):
        return b""
    if headers.get("transfer-encoding", "").lower() == "chunked":
        return _unchunked(rest)
    if "content-length" in headers:
        length = int(headers["content-length"])
        return rest[:length] if len(rest) >= length else None
    return rest if ended else None


def _unchunked(rest: bytes) -> bytes | None:
    body = b""
    while True:
        size_line, separator, rest = rest.partition(b"\r\n")
        if not separator:
            return None
        size = int(size_line.split(b";")[0], 16)
        if size == 0:
            return body if rest.endswith(b"\r\n") else None
        if len(rest) < size + 2:
            return None
        body, rest = body + rest[:size], rest[size + 2 :]
