"""The receiving half of the TCP plane: one rank of a server."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Callable
from types import TracebackType
from typing import Literal, Self

from conformance.plane import frames
from conformance.plane.errors import (
    BroadcastTimeoutError,
    JoinRejectedError,
    JoinTimeoutError,
    MismatchError,
    PeerAbortedError,
    PeerGoneError,
    ProtocolError,
)

_RETRY_SECONDS = 0.05
_DISCARD_BYTES = 1 << 20


class Receiver:
    """One rank that has joined a group. Deadlines are values of ``time.monotonic()``; use ``Receiver.join``."""

    def __init__(self, connection: socket.socket, report: Callable[[str], None]) -> None:
        self._connection = connection
        self._report = report
        self._sequence = 0

    @classmethod
    def join(
        cls,
        address: str,
        port: int,
        rank: int,
        world_size: int,
        deadline: float,
        report: Callable[[str], None] = lambda _: None,
    ) -> Self:
        """Connects to the trainer, trying again while nobody listens, and returns once the whole group exists.

        ``report`` is given one line at once for a mismatch, which otherwise shows only at a deadline.
        Raises JoinTimeoutError, JoinRejectedError, PeerGoneError or ProtocolError.
        """
        connection = cls._connect(address, port, deadline)
        receiver = cls(connection, report)
        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.settimeout(max(deadline - time.monotonic(), 0.01))
            connection.sendall(frames.join(rank, world_size))
            status, length = frames.REPLY.unpack(receiver._exactly(frames.REPLY.size, deadline, "joining"))
            if status not in (frames.ACCEPTED, frames.REJECTED) or length > frames.LONGEST_REASON:
                raise ProtocolError(f"reply to a join with status {status} and {length} bytes of text")
            text = bytes(receiver._exactly(length, deadline, "joining")).decode(errors="replace")
            if status == frames.REJECTED:
                raise JoinRejectedError(text)
        except TimeoutError as error:
            connection.close()
            raise JoinTimeoutError(address, port, "no reply from the trainer") from error
        except ConnectionError as error:
            connection.close()
            raise PeerGoneError("joining") from error
        except BaseException:
            connection.close()
            raise
        return receiver

    @staticmethod
    def _connect(address: str, port: int, deadline: float) -> socket.socket:
        while True:
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                raise JoinTimeoutError(address, port, "no trainer listening")
            try:
                return socket.create_connection((address, port), timeout=remaining)
            except OSError:
                time.sleep(min(_RETRY_SECONDS, max(deadline - time.monotonic(), 0)))

    def receive(self, nbytes: int, deadline: float, on_mismatch: Literal["wait", "fail"] = "wait") -> bytearray:
        """The bytes of the next broadcast, of which ``nbytes`` are expected.

        A frame of another length is reported at once; then, with ``"wait"``, this blocks until the deadline or until
        the peer leaves, as a collective would, and raises MismatchError. Raises BroadcastTimeoutError, PeerGoneError,
        PeerAbortedError or ProtocolError for the rest.
        """
        doing = f"broadcast {self._sequence} of {nbytes} bytes was awaited"
        try:
            kind, sequence, count = frames.FRAME.unpack(self._exactly(frames.FRAME.size, deadline, doing))
            self._check(kind, sequence, count, deadline)
            if count != nbytes:
                mismatch = MismatchError(self._sequence, nbytes, count)
                self._report(str(mismatch))
                if on_mismatch == "wait":
                    self._wait_in_vain(count, deadline)
                raise mismatch
            data = self._exactly(nbytes, deadline, doing)
        except TimeoutError as error:
            raise BroadcastTimeoutError(self._sequence, nbytes) from error
        except ConnectionError as error:
            raise PeerGoneError(doing) from error
        self._sequence += 1
        return data

    def _check(self, kind: int, sequence: int, count: int, deadline: float) -> None:
        if kind == frames.ABORT:
            if count > frames.LONGEST_REASON:
                raise ProtocolError(f"abort frame with {count} bytes of text")
            raise PeerAbortedError(bytes(self._exactly(count, deadline, "aborting")).decode(errors="replace"))
        if kind != frames.BROADCAST:
            raise ProtocolError(f"frame of unknown kind {kind}")
        if sequence != self._sequence:
            raise ProtocolError(f"frame {sequence} where frame {self._sequence} was due")

    def _wait_in_vain(self, count: int, deadline: float) -> None:
        # The data of the frame hides the peer's leaving or its abort, so it is read and thrown away.
        with contextlib.suppress(TimeoutError, ConnectionError, PeerGoneError):
            while True:
                while count:
                    count -= len(self._exactly(min(count, _DISCARD_BYTES), deadline, "discarding"))
                kind, _, count = frames.FRAME.unpack(self._exactly(frames.FRAME.size, deadline, "waiting"))
                if kind == frames.ABORT:
                    return

    def _exactly(self, nbytes: int, deadline: float, doing: str) -> bytearray:
        data = bytearray(nbytes)
        view = memoryview(data)
        while view:
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                raise TimeoutError
            self._connection.settimeout(remaining)
            got = self._connection.recv_into(view)
            if not got:
                raise PeerGoneError(doing)
            view = view[got:]
        return data

    def abort(self, reason: str) -> None:
        """Tells the trainer why this rank leaves."""
        encoded = reason.encode()
        with contextlib.suppress(OSError):
            self._connection.settimeout(1.0)
            self._connection.sendall(frames.header(frames.ABORT, self._sequence, len(encoded)) + encoded)

    def close(self) -> None:
        """Leaves the group."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
