"""Rank 0 of the TCP plane once the group exists: one frame to every receiver at once."""

from __future__ import annotations

import contextlib
import errno
import selectors
import socket
import time
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType

from vime_sync.errors import Abandoned, CheckpointError, PeerGone, Stalled
from vime_sync.redaction import shortened
from vime_sync.tcp_plane import (
    ABORT,
    BROADCAST,
    FRAME_HEADER_BYTES,
    LONGEST_REASON,
    decode_frame_header,
    encode_frame_header,
)
from vime_sync.wake import Wake

# Large enough to keep system calls rare, small enough that progress and abandonment are noticed soon.
_STEP = 4 << 20


class _Receiver:
    """One receiver: its socket, what of the frame it has taken, and what it has said."""

    def __init__(self, rank: int, sock: socket.socket) -> None:
        self.rank = rank
        self.sock = sock
        self.sent = 0
        self._parts: list[memoryview] = []
        self._part = 0
        self._offset = 0
        self._said = bytearray()

    def begin(self, parts: list[memoryview]) -> None:
        """Takes a new frame; the parts are shared among the receivers, the position in them is its own."""
        self._parts = parts
        self._part = self._offset = self.sent = 0
        self._skip_empty()

    @property
    def done(self) -> bool:
        return self._part == len(self._parts)

    def send(self) -> int:
        """Hands over what the socket takes now. Raises PeerGone."""
        part = self._parts[self._part]
        try:
            taken = self.sock.send(part[self._offset : self._offset + _STEP])
        except (BlockingIOError, InterruptedError):
            return 0
        except OSError as error:
            if error.errno == errno.EFAULT:  # the kernel found no page behind the view
                raise CheckpointError("mapped file", "shrank while it was sent") from None
            raise self._gone() from error
        self._offset += taken
        self.sent += taken
        if self._offset == part.nbytes:
            self._part += 1
            self._offset = 0
            self._skip_empty()
        return taken

    def listen(self) -> None:
        """Reads what it says: after its join a receiver leaves, or aborts. Raises PeerGone for both."""
        try:
            piece = self.sock.recv(4096)
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            raise PeerGone(self.rank, f"left ({error.strerror})") from None
        if not piece:
            raise PeerGone(self.rank, "left")
        self._said += piece
        if self._said[0] != ABORT:
            raise PeerGone(self.rank, "sent bytes that are no abort")
        if len(self._said) >= FRAME_HEADER_BYTES:
            _, _, count = decode_frame_header(bytes(self._said[:FRAME_HEADER_BYTES]))
            if len(self._said) >= FRAME_HEADER_BYTES + min(count, LONGEST_REASON):
                text = self._said[FRAME_HEADER_BYTES : FRAME_HEADER_BYTES + min(count, LONGEST_REASON)]
                raise PeerGone(self.rank, "aborted", reason=shortened(bytes(text)))

    def _gone(self) -> PeerGone:
        """Why it left: an abort may lie unread in the socket."""
        self.sock.setblocking(False)
        try:
            while True:
                before = len(self._said)
                self.listen()
                if len(self._said) == before:
                    return PeerGone(self.rank, "left")
        except PeerGone as gone:
            return gone

    def _skip_empty(self) -> None:
        while not self.done and self._parts[self._part].nbytes == 0:
            self._part += 1


class TcpPlaneSender:
    """The trainer's end of a group. `receivers` maps ranks, from 1, to sockets that were told they are accepted.

    After any error the group must not be used again: a receiver may hold half a frame. It closes itself then.
    """

    def __init__(self, receivers: Mapping[int, socket.socket]) -> None:
        self._receivers = [_Receiver(rank, sock) for rank, sock in sorted(receivers.items())]
        self._selector = selectors.DefaultSelector()
        self._wake = Wake()
        self._selector.register(self._wake, selectors.EVENT_READ)
        for receiver in self._receivers:
            receiver.sock.setblocking(False)
            self._selector.register(receiver.sock, selectors.EVENT_READ, receiver)
        self._sequence = 0
        self._closed = False

    def __enter__(self) -> TcpPlaneSender:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def closed(self) -> bool:
        """Whether the group is gone."""
        return self._closed

    def wake(self) -> None:
        """Makes a running `broadcast` look at its `stop` now. From any thread."""
        self._wake.up()

    def broadcast(
        self,
        buffers: Iterable[memoryview],
        deadline: float,
        stop: Callable[[], bool] = lambda: False,
        on_bytes: Callable[[int], None] = lambda _: None,
    ) -> None:
        """Sends the buffers, one after the other, as one frame to every receiver; returns when all is handed over.

        buffers   flat views of bytes; none is copied
        deadline  moment of `time.monotonic()`
        stop      asked after every event and `wake`; true gives the group up
        on_bytes  told how many more bytes of the buffers every receiver has been handed

        Raises PeerGone, Stalled at the deadline, Abandoned when `stop` said so or the group was closed before, and
        CheckpointError when a mapped file shrank. The group is closed then.
        """
        if self._closed:
            raise Abandoned("the group is closed and cannot be used again")
        parts = list(buffers)
        count = sum(part.nbytes for part in parts)
        header = memoryview(encode_frame_header(BROADCAST, self._sequence, count))
        self._sequence += 1
        try:
            self._send([header, *parts], deadline, stop, on_bytes)
        except BaseException:
            self.close()
            raise

    def watch(self, deadline: float, stop: Callable[[], bool]) -> None:
        """Watches the receivers, between two broadcasts, until `stop` says so after a `wake`, or the deadline.

        Raises PeerGone; the group is closed then.
        """
        try:
            while not stop() and (remaining := deadline - time.monotonic()) > 0:
                for key, _ in self._selector.select(remaining):
                    if key.data is None:
                        self._wake.drain()
                    else:
                        key.data.listen()
        except BaseException:
            self.close()
            raise

    def abandon(self, reason: str) -> None:
        """Leaves between two frames, telling the receivers why, as far as their sockets take it at once."""
        if self._closed:
            return
        text = reason.encode()[:LONGEST_REASON]
        frame = encode_frame_header(ABORT, self._sequence, len(text)) + text
        for receiver in self._receivers:
            with contextlib.suppress(OSError):
                receiver.sock.send(frame)
        self.close()

    def close(self) -> None:
        """Leaves. A receiver in the middle of a frame sees the connection end."""
        self._closed = True
        self._selector.close()
        for receiver in self._receivers:
            receiver.sock.close()
        self._wake.close()

    def _send(
        self, parts: list[memoryview], deadline: float, stop: Callable[[], bool], on_bytes: Callable[[int], None]
    ) -> None:
        total = sum(part.nbytes for part in parts)
        waiting = set(self._receivers)
        for receiver in self._receivers:
            receiver.begin(parts)
            self._selector.modify(receiver.sock, selectors.EVENT_READ | selectors.EVENT_WRITE, receiver)
        reported = FRAME_HEADER_BYTES
        while waiting:
            least = min(receiver.sent for receiver in self._receivers)
            if stop():
                raise Abandoned(f"gave up after {least} of {total} bytes of a broadcast were handed over")
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                slow = ", ".join(str(receiver.rank) for receiver in sorted(waiting, key=_rank))
                message = f"rank {slow} took {least} of {total} bytes of a broadcast before the deadline"
                raise Stalled(message, sent=least, total=total)
            for key, events in self._selector.select(remaining):
                self._serve(key, events, waiting)
            least = min(receiver.sent for receiver in self._receivers)
            if least > reported:
                on_bytes(least - reported)
                reported = least

    def _serve(self, key: selectors.SelectorKey, events: int, waiting: set[_Receiver]) -> None:
        receiver = key.data
        if receiver is None:
            self._wake.drain()
            return
        if events & selectors.EVENT_READ:
            receiver.listen()
        if events & selectors.EVENT_WRITE:
            receiver.send()
            if receiver.done:
                waiting.discard(receiver)
                self._selector.modify(receiver.sock, selectors.EVENT_READ, receiver)


def _rank(receiver: _Receiver) -> int:
    return receiver.rank
