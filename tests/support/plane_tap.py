"""A forwarder on the way from the trainer to a receiver, which may flip one bit of what passes."""

from __future__ import annotations

import contextlib
import socket
import threading
from types import TracebackType


class PlaneTap:
    """Listens on 127.0.0.1 and forwards to the same port of 127.0.0.2, where the trainer is made to listen.

    `flip_at` is the position, in the trainer's stream (replies and frame headers included), of a byte whose lowest bit
    is flipped.
    """

    def __init__(self, flip_at: int) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._flip_at = flip_at
        self._sockets: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept, daemon=True)]

    def __enter__(self) -> PlaneTap:
        self._threads[0].start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for sock in [self._listener, *self._sockets]:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            sock.close()
        for thread in self._threads:
            thread.join(5.0)
            assert not thread.is_alive()

    def _accept(self) -> None:
        while True:
            try:
                receiver, _ = self._listener.accept()
            except OSError:
                return
            self._sockets.append(receiver)
            try:
                trainer = socket.create_connection(("127.0.0.2", self.port), timeout=10.0)
            except OSError:
                receiver.close()
                continue
            trainer.settimeout(None)
            self._sockets.append(trainer)
            for source, sink, flip_at in ((receiver, trainer, None), (trainer, receiver, self._flip_at)):
                thread = threading.Thread(target=self._forward, args=(source, sink, flip_at), daemon=True)
                self._threads.append(thread)
                thread.start()

    @staticmethod
    def _forward(source: socket.socket, sink: socket.socket, flip_at: int | None) -> None:
        position = 0
        with contextlib.suppress(OSError):
            while piece := bytearray(source.recv(1 << 20)):
                if flip_at is not None and position <= flip_at < position + len(piece):
                    piece[flip_at - position] ^= 1
                position += len(piece)
                sink.sendall(piece)
        with contextlib.suppress(OSError):
            sink.shutdown(socket.SHUT_WR)
