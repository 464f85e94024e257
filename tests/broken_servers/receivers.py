"""Receivers that do not do what they say."""

from __future__ import annotations

import socket

from mock_vllm.receivers.receiver import PlaneEvent, Sink
from mock_vllm.receivers.tcp import TcpReceiver

SECONDS = 5.0


class FlipsOneBit(TcpReceiver):
    """The first byte of every broadcast of at least `LEAST` bytes arrives with one bit changed."""

    LEAST = 1

    def __init__(self, on_event: PlaneEvent) -> None:
        super().__init__(on_event, SECONDS)

    def broadcast(self, nbytes: int, sink: Sink) -> None:
        first = nbytes >= self.LEAST

        def flipping(piece: memoryview) -> None:
            nonlocal first
            if first:
                piece[0] ^= 1
                first = False
            sink(piece)

        super().broadcast(nbytes, flipping)


class FlipsOneTensor(FlipsOneBit):
    """Only one large tensor is hurt."""

    LEAST = 20_000


class TakesNothing(TcpReceiver):
    """Joins, then announces success without having received a byte."""

    delivers_bytes = False

    def __init__(self, on_event: PlaneEvent) -> None:
        super().__init__(on_event, SECONDS)

    def broadcast(self, nbytes: int, sink: Sink) -> None:
        del nbytes, sink


class ForgivesTheByteCount(TcpReceiver):
    """Takes a frame of any size as the tensor that it expected, cut or filled with zeros, and goes on."""

    def __init__(self, on_event: PlaneEvent) -> None:
        super().__init__(on_event, SECONDS)

    def broadcast(self, nbytes: int, sink: Sink) -> None:
        left = nbytes

        def fitting(piece: memoryview) -> None:
            nonlocal left
            taken = piece[:left]
            left -= len(taken)
            sink(taken)

        announced = self._peek_byte_count()
        super().broadcast(nbytes if announced is None else announced, fitting)
        if left:
            sink(memoryview(bytes(left)))

    def _peek_byte_count(self) -> int | None:
        """Return the byte count of the next frame without taking it, or None when none comes."""
        sock = self._require_socket()
        sock.settimeout(SECONDS)
        try:
            head = sock.recv(17, socket.MSG_PEEK | socket.MSG_WAITALL)
        except OSError:
            return None
        return int.from_bytes(head[9:17], "big") if len(head) == 17 else None
