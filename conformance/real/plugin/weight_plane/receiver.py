"""A rank from 1 on: joins the trainer's group and takes its broadcasts."""

from __future__ import annotations

import contextlib
import select
import socket
import time

from . import wire
from .deadline import Deadline
from .errors import (
    AbortedError,
    BroadcastError,
    DeadlineError,
    GroupBrokenError,
    MeetingError,
    MismatchError,
    PeerGoneError,
    ProtocolError,
)
from .log import logger
from .settings import Settings

RETRY_SECONDS = 0.05


def join(address: str, port: int, rank: int, world_size: int, settings: Settings) -> Receiver:
    """Join the group at `address:port` as `rank` of `world_size` and wait until it exists.

    Tries again while nobody listens. Raises `MeetingError` when the trainer refuses, leaves or is not there in time.
    """

    def failed(reason: str) -> MeetingError:
        return MeetingError(address, port, rank, world_size, reason)

    if isinstance(port, bool) or not isinstance(port, int):
        raise failed(f"the port is to be a number, got {port!r}")
    deadline = Deadline(settings.timeout)
    try:
        sock = _connect(address, port, deadline)
    except TimeoutError:
        raise failed(f"nobody listened within {settings.timeout:g} s") from None
    except OSError as error:
        raise failed(f"{type(error).__name__}: {error}") from error
    try:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        wire.send_all(sock, wire.JOIN.pack(wire.MAGIC, rank, world_size), deadline)
        status, length = wire.REPLY.unpack(wire.receive_exactly(sock, wire.REPLY.size, deadline))
        text = wire.read_text(sock, length, deadline)
        if status != wire.ACCEPTED:
            raise failed(f"the trainer refused: {text}")
    except TimeoutError:
        sock.close()
        raise failed(f"the group was not whole within {settings.timeout:g} s") from None
    except OSError as error:
        sock.close()
        raise failed(f"the trainer went away before the group was whole ({error})") from error
    except BaseException:
        sock.close()
        raise
    logger.info("plane: rank %d of %d joined at %s:%d", rank, world_size, address, port)
    return Receiver(sock, settings)


def _connect(address: str, port: int, deadline: Deadline) -> socket.socket:
    while True:
        try:
            return socket.create_connection((address, port), timeout=deadline.remaining())
        except ConnectionRefusedError:
            time.sleep(min(RETRY_SECONDS, deadline.remaining()))


class Receiver:
    """The connection to the trainer. Not thread-safe. After a failure every call raises `GroupBrokenError`."""

    def __init__(self, sock: socket.socket, settings: Settings) -> None:
        self._sock = sock
        self._settings = settings
        self._sequence = 0
        self._broken: str | None = None

    def receive(self, view: memoryview) -> None:
        """Fill `view` (writable, one byte an item) with the next broadcast.

        Raises a `BroadcastError` of the kind that docs/tcp-plane.md names, and closes the connection then.
        """
        if self._broken is not None:
            raise GroupBrokenError(self._broken)
        try:
            self._receive(view)
        except BroadcastError as error:
            self._leave(error)
            raise
        self._sequence += 1

    def close(self) -> None:
        """Leave the group. May be called at any time, and again."""
        if self._broken is None:
            self._broken = "it was closed"
        self._sock.close()

    def _receive(self, view: memoryview) -> None:
        sequence, expected = self._sequence, len(view)
        deadline = Deadline(self._settings.timeout)
        try:
            frame = wire.read_frame(self._sock, deadline)
            if frame.kind == wire.ABORT:
                raise AbortedError(sequence, expected, f"the sender aborted: {self._reason(frame.nbytes, deadline)}")
            if frame.kind != wire.BROADCAST:
                raise ProtocolError(sequence, expected, f"frame of unknown kind {frame.kind}")
            if frame.sequence != sequence:
                raise ProtocolError(sequence, expected, f"the sender is at broadcast {frame.sequence}")
            if frame.nbytes != expected:
                self._mismatch(frame.nbytes, expected, deadline)
            wire.receive_into(self._sock, view, deadline)
        except TimeoutError:
            waited = f"nothing more arrived within {self._settings.timeout:g} s"
            raise DeadlineError(sequence, expected, waited) from None
        except OSError as error:
            raise PeerGoneError(sequence, expected, f"the sender has gone ({error})") from error

    def _reason(self, nbytes: int, deadline: Deadline) -> str:
        try:
            return wire.read_text(self._sock, nbytes, deadline)
        except OSError:
            return "(its reason was cut off)"

    def _mismatch(self, announced: int, expected: int, deadline: Deadline) -> None:
        """Say it at once, then hang until the deadline or until the peer leaves. Always raises."""
        said = f"the sender announced {announced} bytes"
        logger.error("plane: mismatch: broadcast %d: expected %d bytes, %s", self._sequence, expected, said)
        if not self._settings.wait_on_mismatch:
            raise MismatchError(self._sequence, expected, said)
        # The bytes stay unread, as a collective that never matched would leave them, so the end of the
        # connection cannot be seen by reading: the poller tells it (POLLRDHUP) in spite of waiting bytes.
        poller = select.poll()
        poller.register(self._sock, select.POLLRDHUP)
        try:
            while not poller.poll(deadline.remaining() * 1000):
                pass
        except TimeoutError:
            waited = f"{said}; nothing else came within {self._settings.timeout:g} s"
            raise DeadlineError(self._sequence, expected, waited) from None
        raise PeerGoneError(self._sequence, expected, f"{said}, then left")

    def _leave(self, error: BroadcastError) -> None:
        self._broken = str(error)
        logger.error("plane: %s", error)
        reason = self._broken.encode()
        with contextlib.suppress(OSError):
            self._sock.setblocking(False)
            self._sock.send(wire.Frame(wire.ABORT, self._sequence, len(reason)).pack() + reason)
        self._sock.close()
