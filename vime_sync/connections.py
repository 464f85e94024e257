"""The connections under `requests`, made to tell a watchdog which socket they use."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from typing import Any

from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.exceptions import ConnectTimeoutError, NameResolutionError, NewConnectionError

from vime_sync.watchdog import Watchdog


class _Current(threading.local):
    # `requests` runs a call in the thread that asked for it and offers no way to hand anything down to the connection.
    watchdog: Watchdog | None = None


current = _Current()


def _watch(sock: socket.socket | None) -> None:
    if sock is not None and current.watchdog is not None:
        current.watchdog.attach(sock)


def _connected(connection: HTTPConnection) -> socket.socket:
    """A socket to the connection's host, within its timeout for all addresses of the name together.

    urllib3 gives every address the full timeout. (Resolving the name is bounded by the system's resolver alone.)
    """
    # urllib3 hands its connections the number of seconds; anything else means "the system's default".
    seconds = float(connection.timeout) if isinstance(connection.timeout, (int, float)) else 60.0
    deadline = time.monotonic() + seconds
    host = connection.host.strip("[]")
    try:
        found = socket.getaddrinfo(host, connection.port, type=socket.SOCK_STREAM)
    except (socket.gaierror, UnicodeError) as error:
        failure = error if isinstance(error, socket.gaierror) else socket.gaierror(str(error))
        raise NameResolutionError(host, connection, failure) from error
    last: OSError | None = None
    for family, kind, protocol, _, address in found:
        sock = socket.socket(family, kind, protocol)
        try:
            _watch(sock)
            sock.settimeout(max(0.001, deadline - time.monotonic()))
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.connect(address)
        except OSError as error:
            sock.close()
            last = error
            continue
        sock.settimeout(seconds)
        _watch(sock)  # again: a deadline that passed before the connection stood could not shut it
        return sock
    if isinstance(last, TimeoutError):
        raise ConnectTimeoutError(connection, f"no connection within {seconds:g} s") from last
    raise NewConnectionError(connection, str(last)) from last


def _acknowledge_at_once(sock: socket.socket | None) -> None:
    """uvicorn writes head and body of an answer apart, on a socket that may wait for the head's acknowledgement.

    Left to itself the system sends that up to 40 ms later, at every call. The option lasts for one answer, on Linux.
    """
    if isinstance(sock, socket.socket) and hasattr(socket, "TCP_QUICKACK"):
        with contextlib.suppress(OSError):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)


class _Connection(HTTPConnection):
    def _new_conn(self) -> socket.socket:
        return _connected(self)

    def request(self, *arguments: Any, **options: Any) -> None:
        _watch(self.sock)  # a connection out of the pool; a new one is not open yet
        super().request(*arguments, **options)
        _acknowledge_at_once(self.sock)


class _TlsConnection(HTTPSConnection):
    def _new_conn(self) -> socket.socket:
        return _connected(self)

    def request(self, *arguments: Any, **options: Any) -> None:
        _watch(self.sock)
        super().request(*arguments, **options)
        _acknowledge_at_once(self.sock)


class _Pool(HTTPConnectionPool):
    ConnectionCls = _Connection


class _TlsPool(HTTPSConnectionPool):
    ConnectionCls = _TlsConnection


class WatchedAdapter(HTTPAdapter):
    """An adapter whose connections report to `current.watchdog`. It never repeats a request."""

    def init_poolmanager(self, *arguments: Any, **options: Any) -> None:
        super().init_poolmanager(*arguments, **options)
        self.poolmanager.pool_classes_by_scheme = {"http": _Pool, "https": _TlsPool}

    def drop_idle(self) -> None:
        """Closes the connections that wait in the pool; those in use are closed when they come back."""
        self.poolmanager.clear()
