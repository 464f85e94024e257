"""A rank of 1 or more on the TCP plane (docs/tcp-plane.md): plain sockets, no torch, every wait bounded."""

from __future__ import annotations

import contextlib
import select
import socket
import time

from mock_vllm.receivers import tcp_wire as wire
from mock_vllm.receivers.receiver import PlaneError, PlaneEvent, Sink

_CHUNK_BYTES = 1024 * 1024
_CONNECT_RETRY_SECONDS = 0.02
_CONNECT_SLICE_SECONDS = 1.0
"""A single attempt to connect lasts no longer, so that abandoning is noticed."""


class TcpReceiver:
    """Receives broadcasts from the trainer, which listens at the address named by `init_info`.

    Args:
        on_event: told of every event at the moment it happens.
        timeout: seconds that one wait may last: for the group to be complete, and for the next bytes of a broadcast.
        fail_on_mismatch: end a byte count mismatch at once instead of hanging to the deadline as NCCL would.
    """

    delivers_bytes = True

    def __init__(self, on_event: PlaneEvent, timeout: float = 300.0, fail_on_mismatch: bool = False) -> None:
        self._on_event = on_event
        self._timeout = timeout
        self._fail_on_mismatch = fail_on_mismatch
        self._socket: socket.socket | None = None
        self._sequence = 0
        self._abandoned = False
        self._buffer = memoryview(bytearray(_CHUNK_BYTES))

    def join(self, address: str, port: int, rank: int, world_size: int) -> None:
        """Connect, ask to join, and wait until every rank has.

        Raises:
            PlaneError: nobody listens, the trainer refuses, or the group is not complete within the deadline.
        """
        where = f"{address}:{port} as rank {rank} of {world_size}"
        self._on_event("join", where)
        deadline = time.monotonic() + self._timeout
        try:
            sock = self._connect(address, port, deadline)
            self._socket = sock
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.sendall(wire.pack_join(rank, world_size))
            status, length = wire.REPLY.unpack(self._read_exactly(wire.REPLY.size, deadline))
            text = self._read_text(length, deadline)
            if status != wire.ACCEPTED:
                raise PlaneError(f"the trainer refused the join: {text}")
        except (OSError, PlaneError) as error:
            self.close()
            reason = self._explain(error, f"the group was not complete within {self._timeout:g} s")
            self._on_event("join_failed", f"{where}: {reason}")
            raise PlaneError(f"could not join the transfer group at {where}: {reason}") from error
        self._on_event("joined", where)

    def broadcast(self, nbytes: int, sink: Sink) -> None:
        """Receive one broadcast.

        Raises:
            PlaneError: the byte count differs from `nbytes` (after the deadline, or at once), the trainer left or
                aborted, or nothing arrived within the deadline.
        """
        sequence = self._sequence
        waiting_for = f"broadcast {sequence} of {nbytes} bytes"
        try:
            frame = wire.unpack_frame(self._read_exactly(wire.FRAME.size, time.monotonic() + self._timeout))
            self._check(frame, sequence, nbytes)
            left = nbytes
            while left:
                piece = self._buffer[: min(left, _CHUNK_BYTES)]
                got = self._read_some(piece, time.monotonic() + self._timeout)
                sink(piece[:got])
                left -= got
        except (OSError, PlaneError) as error:
            self._leave(error, waiting_for)
        self._sequence += 1
        self._on_event("received", waiting_for)

    def abandon(self) -> None:
        """Wake up whoever waits on this receiver; it ends with a PlaneError."""
        self._abandoned = True
        sock = self._socket
        if sock is not None:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the connection; the trainer sees it end."""
        sock, self._socket = self._socket, None
        if sock is not None:
            sock.close()

    def _connect(self, address: str, port: int, deadline: float) -> socket.socket:
        if not isinstance(port, int):
            raise PlaneError(f"the port must be a number, got {port!r}")
        while True:
            self._check_abandoned()
            left = deadline - time.monotonic()
            try:
                return socket.create_connection((address, port), timeout=min(max(left, 0.001), _CONNECT_SLICE_SECONDS))
            except (ConnectionRefusedError, TimeoutError) as error:
                if time.monotonic() + _CONNECT_RETRY_SECONDS >= deadline:
                    raise PlaneError(f"nobody listened there within {self._timeout:g} s") from error
                time.sleep(_CONNECT_RETRY_SECONDS)
            except (TypeError, OverflowError, UnicodeError) as error:
                raise PlaneError(f"not an address and a port: {error}") from error

    def _check(self, frame: wire.Frame, sequence: int, nbytes: int) -> None:
        if frame.kind == wire.ABORT:
            reason = self._read_text(frame.nbytes, time.monotonic() + self._timeout)
            raise PlaneError(f"the trainer aborted: {reason}")
        if frame.kind != wire.BROADCAST or frame.sequence != sequence:
            raise PlaneError(f"expected broadcast {sequence}, got kind {frame.kind} number {frame.sequence}")
        if frame.nbytes != nbytes:
            text = f"broadcast {sequence}: expected {nbytes} bytes, the sender announced {frame.nbytes}"
            self._on_event("mismatch", text)
            if not self._fail_on_mismatch:
                self._hang(text)
            raise PlaneError(text)

    def _hang(self, text: str) -> None:
        """Wait as a collective of unequal sizes does: until the deadline, or until the trainer has gone."""
        sock = self._require_socket()
        gone = getattr(select, "POLLRDHUP", 0)
        poll = select.poll()
        poll.register(sock, gone | select.POLLHUP | select.POLLERR)
        if poll.poll(self._timeout * 1000):
            self._check_abandoned()
            raise PlaneError(f"{text}; then the trainer left")
        raise PlaneError(f"{text}; gave up after {self._timeout:g} s")

    def _read_exactly(self, nbytes: int, deadline: float) -> bytes:
        found = bytearray(nbytes)
        view = memoryview(found)
        filled = 0
        while filled < nbytes:
            filled += self._read_some(view[filled:], deadline)
        return bytes(found)

    def _read_text(self, length: int, deadline: float) -> str:
        if length > wire.MAX_TEXT_BYTES:
            raise PlaneError(f"a text of {length} bytes is not part of the protocol")
        return self._read_exactly(length, deadline).decode(errors="replace")

    def _read_some(self, into: memoryview, deadline: float) -> int:
        sock = self._require_socket()
        sock.settimeout(max(deadline - time.monotonic(), 0.001))
        got = sock.recv_into(into)
        if got == 0:
            self._check_abandoned()
            raise PlaneError("the trainer left")
        return got

    def _leave(self, error: OSError | PlaneError, waiting_for: str) -> None:
        reason = self._explain(error, f"nothing arrived within {self._timeout:g} s")
        event = "aborted" if self._abandoned else "timeout" if isinstance(error, TimeoutError) else "peer_gone"
        self._on_event(event, f"{waiting_for}: {reason}")
        sock = self._socket
        if sock is not None and not self._abandoned:
            with contextlib.suppress(OSError):
                sock.settimeout(0.1)
                sock.sendall(wire.pack_abort(self._sequence, reason))
        self.close()
        raise PlaneError(f"{waiting_for}: {reason}") from error

    def _explain(self, error: Exception, on_timeout: str) -> str:
        if self._abandoned:
            return "abandoned by the mock's owner"
        if isinstance(error, TimeoutError):
            return on_timeout
        return "the trainer left" if isinstance(error, ConnectionError) else str(error)

    def _check_abandoned(self) -> None:
        if self._abandoned:
            raise PlaneError("abandoned by the mock's owner")

    def _require_socket(self) -> socket.socket:
        if self._socket is None:
            raise PlaneError("this rank has left its group")
        return self._socket
