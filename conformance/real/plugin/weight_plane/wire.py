"""The bytes of the TCP plane (docs/tcp-plane.md): three fixed headers, and how to read exactly so many bytes.

All integers are unsigned and big-endian, all text is UTF-8.
"""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass

from .deadline import Deadline

MAGIC = b"WTPLANE1"
JOIN = struct.Struct(">8sII")
REPLY = struct.Struct(">BI")
FRAME = struct.Struct(">BQQ")

ACCEPTED = 0
REJECTED = 1
BROADCAST = 1
ABORT = 2

# An abort's or a rejection's text is for people; a length beyond this is garbage, not a reason.
MAX_TEXT_BYTES = 64 * 1024
# One read or write call moves at most this much, so that a deadline is looked at in between.
CHUNK_BYTES = 4 * 1024 * 1024


class ConnectionEndedError(ConnectionError):
    """The peer closed in the middle of something."""

    def __init__(self, got: int, wanted: int) -> None:
        self.got, self.wanted = got, wanted
        super().__init__(f"the connection ended after {got} of {wanted} bytes")


@dataclass(frozen=True)
class Frame:
    """A frame's header. `nbytes` bytes follow it on the wire."""

    kind: int
    sequence: int
    nbytes: int

    def pack(self) -> bytes:
        """The 17 bytes of the header."""
        return FRAME.pack(self.kind, self.sequence, self.nbytes)


def receive_into(sock: socket.socket, view: memoryview, deadline: Deadline) -> None:
    """Fill `view` (bytes, writable) from the socket.

    Raises `ConnectionEndedError` when the peer closes first, `TimeoutError` at the deadline, other `OSError`s as the
    socket gives them.
    """
    got = 0
    while got < len(view):
        sock.settimeout(deadline.remaining())
        count = sock.recv_into(view[got : got + CHUNK_BYTES])
        if count == 0:
            raise ConnectionEndedError(got, len(view))
        got += count


def receive_exactly(sock: socket.socket, count: int, deadline: Deadline) -> bytes:
    """The next `count` bytes. Raises as `receive_into` does."""
    buffer = bytearray(count)
    receive_into(sock, memoryview(buffer), deadline)
    return bytes(buffer)


def send_all(sock: socket.socket, data: bytes | memoryview, deadline: Deadline) -> None:
    """Hand all of `data` to the operating system. Raises `TimeoutError` at the deadline, `OSError` if the peer left."""
    view = memoryview(data)
    sent = 0
    while sent < len(view):
        sock.settimeout(deadline.remaining())
        sent += sock.send(view[sent : sent + CHUNK_BYTES])


def read_frame(sock: socket.socket, deadline: Deadline) -> Frame:
    """The next frame's header. Raises as `receive_into` does."""
    return Frame(*FRAME.unpack(receive_exactly(sock, FRAME.size, deadline)))


def read_text(sock: socket.socket, nbytes: int, deadline: Deadline) -> str:
    """A reason of `nbytes` bytes; what goes beyond `MAX_TEXT_BYTES` is left unread. Raises as `receive_into` does."""
    return receive_exactly(sock, min(nbytes, MAX_TEXT_BYTES), deadline).decode("utf-8", errors="replace")
