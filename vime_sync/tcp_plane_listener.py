"""Rank 0 of the TCP plane before the group exists: listening, and letting the receivers in."""

from __future__ import annotations

import contextlib
import math
import selectors
import socket
import time
from collections.abc import Callable
from types import TracebackType

from vime_sync.errors import Abandoned, NeverJoined, PeerGone, SettingError
from vime_sync.tcp_plane import JOIN_BYTES, MAGIC, decode_join, encode_reply
from vime_sync.tcp_plane_sender import TcpPlaneSender
from vime_sync.wake import Wake

# Strangers that connect and say nothing are dropped, oldest first, beyond this number.
MOST_PENDING = 128


class TcpPlaneListener:
    """Listens at `bind_address:port` for the receivers of a group of `world_size` ranks, the trainer included.

    A port of 0 takes a free one; `port` says which. Raises SettingError when the address cannot be listened on.
    """

    def __init__(self, world_size: int, bind_address: str, port: int = 0) -> None:
        if world_size < 2:
            raise SettingError("world size", f"{world_size} leaves no receiver; the trainer is rank 0")
        if not 0 <= port <= 65535:
            raise SettingError("master port", f"{port} is not in 0..65535")
        self.world_size = world_size
        self._wake = Wake()
        self._joined: dict[int, socket.socket] = {}
        self._pending: dict[socket.socket, bytearray] = {}
        self._rejected: list[str] = []
        self._selector = selectors.DefaultSelector()
        try:
            self._listener = _listening(bind_address, port)
        except (OSError, UnicodeError) as error:
            self._wake.close()
            self._selector.close()
            raise SettingError(
                "bind address",
                f"cannot listen on {bind_address or '(all)'} port {port} ({error})",
                next_step="choose another --master-port, or say where to listen with --bind-address",
            ) from None
        self.port: int = self._listener.getsockname()[1]
        self._listener.setblocking(False)
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._selector.register(self._wake, selectors.EVENT_READ)

    def __enter__(self) -> TcpPlaneListener:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def wake(self) -> None:
        """Makes a running `accept` look at its `stop` now. From any thread."""
        self._wake.up()

    def accept(
        self,
        deadline: float,
        stop: Callable[[], bool] = lambda: False,
        *,
        hint_at: float = math.inf,
        hint: Callable[[], None] = lambda: None,
    ) -> TcpPlaneSender:
        """Waits for every rank and forms the group. Call it once; the listener is closed afterwards.

        deadline  moment of `time.monotonic()`
        stop      asked again after every event and `wake`; true gives the group up
        hint_at   moment of `time.monotonic()`; `hint` is called once then, unless a rank has joined

        Raises NeverJoined at the deadline, Abandoned when `stop` said so, PeerGone when a receiver left as the group
        was formed.
        """
        try:
            while len(self._joined) < self.world_size - 1:
                if stop():
                    raise Abandoned(f"gave up waiting for the receivers ({self._who()})")
                remaining = deadline - time.monotonic()
                if remaining <= 0:
                    raise self.never_joined("not every rank joined before the deadline")
                until_hint = hint_at - time.monotonic()
                if until_hint <= 0:
                    hint_at = math.inf
                    if not self._joined:
                        hint()
                    continue
                for key, _ in self._selector.select(min(remaining, until_hint)):
                    self._serve(key.fileobj)
            return self._formed()
        finally:
            self.close()

    def never_joined(self, message: str) -> NeverJoined:
        """A NeverJoined that tells who is there and who is not."""
        missing = [rank for rank in range(1, self.world_size) if rank not in self._joined]
        return NeverJoined(message, joined=sorted(self._joined), missing=missing, rejected=self._rejected)

    def close(self) -> None:
        """Stops listening and closes what has not become part of a group."""
        self._selector.close()
        self._listener.close()
        for sock in [*self._pending, *self._joined.values()]:
            sock.close()
        self._pending.clear()
        self._wake.close()

    def _who(self) -> str:
        return f"{len(self._joined)} of {self.world_size - 1} had joined"

    def _serve(self, ready: object) -> None:
        if isinstance(ready, socket.socket) and ready.fileno() < 0:
            return  # dropped for an event before this one
        if ready is self._wake:
            self._wake.drain()
        elif ready is self._listener:
            self._admit()
        elif isinstance(ready, socket.socket) and ready in self._pending:
            self._read_join(ready)
        elif isinstance(ready, socket.socket):
            # A receiver says nothing between its join and the reply: it left, or breaks the protocol.
            self._joined = {rank: sock for rank, sock in self._joined.items() if sock is not ready}
            self._drop(ready)

    def _admit(self) -> None:
        try:
            sock, _ = self._listener.accept()
        except OSError:  # it left between its SYN and now
            return
        sock.setblocking(False)
        self._pending[sock] = bytearray()
        self._selector.register(sock, selectors.EVENT_READ)
        if len(self._pending) > MOST_PENDING:
            self._drop(next(iter(self._pending)))

    def _read_join(self, sock: socket.socket) -> None:
        message = self._pending[sock]
        try:
            piece = sock.recv(JOIN_BYTES - len(message))
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            piece = b""
        message += piece
        if not piece or message[: len(MAGIC)] != MAGIC[: len(message)]:
            self._drop(sock)
        elif len(message) == JOIN_BYTES:
            self._judge(sock, bytes(message))

    def _judge(self, sock: socket.socket, message: bytes) -> None:
        join = decode_join(message)
        reason = "no join" if join is None else join.objection(self.world_size, frozenset(self._joined))
        if join is not None and reason is None:
            del self._pending[sock]
            self._joined[join.rank] = sock
            return
        self._rejected.append(reason or "")
        with contextlib.suppress(OSError):  # it need not wait for the reason
            sock.send(encode_reply(reason))
        self._drop(sock)

    def _drop(self, sock: socket.socket) -> None:
        self._pending.pop(sock, None)
        self._selector.unregister(sock)
        sock.close()

    def _formed(self) -> TcpPlaneSender:
        """The group: every receiver is told at once. A reply is so small that it fits into any socket's buffer."""
        receivers, self._joined = self._joined, {}
        try:
            for rank, sock in sorted(receivers.items()):
                try:
                    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    sock.send(encode_reply(None))
                except OSError as error:
                    raise PeerGone(rank, f"left as the group was formed ({error.strerror})") from None
        except PeerGone:
            for sock in receivers.values():
                sock.close()
            raise
        return TcpPlaneSender(receivers)


def _listening(bind_address: str, port: int) -> socket.socket:
    """A listening socket. An empty address is all of them, IPv4 and IPv6 where the machine has both."""
    if not bind_address:
        dual = socket.has_dualstack_ipv6()
        family = socket.AF_INET6 if dual else socket.AF_INET
        return socket.create_server(("", port), family=family, backlog=1024, dualstack_ipv6=dual)
    family, _, _, _, address = socket.getaddrinfo(bind_address, port, type=socket.SOCK_STREAM)[0]
    return socket.create_server(address, family=family, backlog=1024)  # sets SO_REUSEADDR on POSIX
