"""A receiver of the TCP plane for tests, written from docs/tcp-plane.md with nothing of the packages in it."""

from __future__ import annotations

import socket
import struct


class PlaneReceiver:
    """One receiver. Every wait ends after five seconds."""

    def __init__(self, port: int, rank: int, world_size: int, *, magic: bytes = b"WTPLANE1") -> None:
        self.sock = socket.create_connection(("127.0.0.1", port), timeout=5.0)
        self.sock.sendall(magic + struct.pack(">II", rank, world_size))

    def reply(self) -> tuple[int, str]:
        """Status and text of the trainer's reply."""
        status, length = struct.unpack(">BI", self.exactly(5))
        return status, self.exactly(length).decode()

    def frame(self) -> tuple[int, int, bytes]:
        """Kind, sequence number and bytes of the next frame."""
        kind, sequence, count = struct.unpack(">BQQ", self.exactly(17))
        return kind, sequence, self.exactly(count)

    def abort(self, reason: str) -> None:
        """Sends an abort."""
        text = reason.encode()
        self.sock.sendall(struct.pack(">BQQ", 2, 0, len(text)) + text)

    def exactly(self, count: int) -> bytes:
        """So many bytes. Raises EOFError when the connection ends first."""
        data = bytearray()
        while len(data) < count:
            piece = self.sock.recv(min(1 << 20, count - len(data)))
            if not piece:
                raise EOFError(f"{len(data)} of {count} bytes")
            data += piece
        return bytes(data)

    def at_end(self) -> bool:
        """Whether the trainer has closed the connection, and nothing is left to read."""
        try:
            return self.sock.recv(1) == b""
        except ConnectionError:
            return True

    def close(self) -> None:
        """Leaves."""
        self.sock.close()
