"""The sending half of the TCP plane: rank 0, which listens and broadcasts."""

from __future__ import annotations

import contextlib
import selectors
import socket
import time
from types import TracebackType
from typing import Self

from conformance.plane import frames
from conformance.plane.errors import MeetingTimeoutError, PeerGoneError

_POLL_SECONDS = 0.5


class Trainer:
    """Rank 0 of one group. Deadlines are values of ``time.monotonic()``.

    ``world_size`` counts the trainer. ``port`` 0 takes a free one; see ``port`` afterwards.
    Raises OSError when the address cannot be bound.
    """

    def __init__(self, world_size: int, host: str = "127.0.0.1", port: int = 0) -> None:
        self.world_size = world_size
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._listener = socket.create_server((host, port), family=family, backlog=world_size + 8)
        self.port: int = self._listener.getsockname()[1]
        self._members: dict[int, socket.socket] = {}
        self._sequence = 0

    def meet(self, deadline: float, watch: socket.socket | None = None) -> bool:
        """Waits until every rank has joined, then accepts all of them at once and returns True.

        Returns False as soon as ``watch`` (the connection on which the server may refuse instead) can be read.
        Raises MeetingTimeoutError at the deadline.
        """
        joining: dict[socket.socket, bytearray] = {}
        with selectors.DefaultSelector() as selector:
            selector.register(self._listener, selectors.EVENT_READ)
            if watch is not None:
                selector.register(watch, selectors.EVENT_READ)
            try:
                while len(self._members) < self.world_size - 1:
                    remaining = deadline - time.monotonic()
                    if remaining <= 0:
                        raise self._meeting_timeout()
                    ready = [key.fileobj for key, _ in selector.select(min(remaining, _POLL_SECONDS))]
                    for source in ready:
                        if source is self._listener:
                            arrived, _ = self._listener.accept()
                            joining[arrived] = bytearray()
                            selector.register(arrived, selectors.EVENT_READ)
                        elif isinstance(source, socket.socket) and source in joining:
                            self._read_join(source, joining, selector)
                    if watch is not None and watch in ready and len(self._members) < self.world_size - 1:
                        return False
            finally:
                for left in joining:
                    left.close()
        for member in self._members.values():
            member.settimeout(max(deadline - time.monotonic(), 0.1))
            with contextlib.suppress(OSError):  # a member that left is found by the first broadcast
                member.sendall(frames.reply(frames.ACCEPTED))
        return True

    def _meeting_timeout(self) -> MeetingTimeoutError:
        joined = tuple(sorted(self._members))
        missing = tuple(rank for rank in range(1, self.world_size) if rank not in self._members)
        return MeetingTimeoutError(joined, missing)

    def _read_join(
        self, source: socket.socket, joining: dict[socket.socket, bytearray], selector: selectors.BaseSelector
    ) -> None:
        received = joining[source]
        try:
            part = source.recv(frames.JOIN.size - len(received))
        except OSError:
            part = b""
        received += part
        foreign = not frames.MAGIC.startswith(bytes(received[: len(frames.MAGIC)]))
        if part and not foreign and len(received) < frames.JOIN.size:
            return
        selector.unregister(source)
        del joining[source]
        if not part or foreign:
            source.close()
            return
        _, rank, world_size = frames.JOIN.unpack(received)
        reason = self._objection(rank, world_size)
        if reason is None:
            source.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._members[rank] = source
            return
        with contextlib.suppress(OSError):
            source.sendall(frames.reply(frames.REJECTED, reason))
        source.close()

    def _objection(self, rank: int, world_size: int) -> str | None:
        if world_size != self.world_size:
            return f"world size {world_size} differs from the trainer's {self.world_size}"
        if not 1 <= rank < self.world_size:
            return f"rank {rank} is outside 1..{self.world_size - 1}"
        if rank in self._members:
            return f"rank {rank} has joined already"
        return None

    def broadcast(self, data: bytes, deadline: float, only: int | None = None) -> None:
        """Sends one frame to every receiver; returns once the operating system has the bytes.

        With ``only``, the frame announces ``len(data)`` bytes and carries just the first ``only`` of them: what a
        sender that dies within a frame leaves behind. Raises PeerGoneError, naming the rank, when a receiver left or
        does not take the bytes before the deadline.
        """
        sent = data if only is None else data[:only]
        frame = frames.header(frames.BROADCAST, self._sequence, len(data)) + sent
        for rank, member in self._members.items():
            try:
                member.settimeout(max(deadline - time.monotonic(), 0.01))
                member.sendall(frame)
            except OSError as error:
                raise PeerGoneError(f"broadcast {self._sequence} went to rank {rank} ({error})") from error
        self._sequence += 1

    def abort(self, reason: str) -> None:
        """Sends an abort frame to every receiver that is still there."""
        encoded = reason.encode()
        frame = frames.header(frames.ABORT, self._sequence, len(encoded)) + encoded
        for member in self._members.values():
            with contextlib.suppress(OSError):
                member.settimeout(1.0)
                member.sendall(frame)

    def close(self) -> None:
        """Leaves: closes every connection and the listening socket."""
        for member in self._members.values():
            member.close()
        self._members.clear()
        self._listener.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
