"""Rank 0 of the TCP plane, written for the tests alone so that no implementation checks itself (docs/tcp-plane.md)."""

from __future__ import annotations

import socket
import struct
from types import TracebackType


class PlaneTrainer:
    """Listens on a free port of 127.0.0.1 and speaks raw bytes; every wait ends after `timeout` seconds."""

    def __init__(self, timeout: float = 5.0) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.settimeout(timeout)
        self.port: int = self.listener.getsockname()[1]
        self.timeout = timeout
        self.peers: list[socket.socket] = []
        self.joins: list[tuple[bytes, int, int]] = []
        self.sequence = 0

    def accept_join(self) -> socket.socket:
        """Take one connection and its join, without answering."""
        peer, _ = self.listener.accept()
        peer.settimeout(self.timeout)
        self.joins.append(struct.unpack(">8sII", self.read(peer, 16)))
        self.peers.append(peer)
        return peer

    def accept(self, receivers: int = 1) -> None:
        """Take all receivers, then accept them at once."""
        for _ in range(receivers):
            self.accept_join()
        for peer in self.peers:
            peer.sendall(struct.pack(">BI", 0, 0))

    def send(self, payload: bytes, announced: int | None = None, sequence: int | None = None, kind: int = 1) -> None:
        """Send one frame to everybody; the head may lie."""
        number = self.sequence if sequence is None else sequence
        head = struct.pack(">BQQ", kind, number, len(payload) if announced is None else announced)
        for peer in self.peers:
            peer.sendall(head + payload)
        self.sequence += 1

    def read(self, peer: socket.socket, nbytes: int) -> bytes:
        """Read exactly that many bytes, or fewer at the end of the stream."""
        found = b""
        while len(found) < nbytes and (piece := peer.recv(nbytes - len(found))):
            found += piece
        return found

    def leave(self) -> None:
        """Close every connection."""
        for peer in self.peers:
            peer.close()
        self.peers.clear()

    def __enter__(self) -> PlaneTrainer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.leave()
        self.listener.close()
