"""Rank 0: listens, gathers every rank, and sends each broadcast to all of them."""

from __future__ import annotations

import contextlib
import selectors
import socket
from collections.abc import Container

from . import wire
from .deadline import Deadline
from .errors import BroadcastError, DeadlineError, GroupBrokenError, MeetingError, PeerGoneError
from .log import logger
from .settings import Settings


def gather(address: str, port: int, world_size: int, settings: Settings) -> Sender:
    """Listen on `address:port` until ranks 1 to `world_size` - 1 have joined.

    Raises `MeetingError` when the port cannot be had, or at the deadline, naming the ranks that joined and the others.
    """
    deadline = Deadline(settings.timeout)
    members: dict[int, socket.socket] = {}
    try:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        with socket.create_server((address, port), family=family, backlog=max(16, world_size)) as listener:
            while len(members) < world_size - 1:
                listener.settimeout(deadline.remaining())
                peer, _ = listener.accept()
                _admit(peer, members, world_size, deadline)
        for peer in members.values():
            wire.send_all(peer, wire.REPLY.pack(wire.ACCEPTED, 0), deadline)
    except OSError as error:
        for peer in members.values():
            peer.close()
        absent = sorted(set(range(1, world_size)) - set(members))
        reason = f"joined: ranks {sorted(members)}, missing: ranks {absent} ({error})"
        raise MeetingError(address, port, 0, world_size, reason) from error
    logger.info("plane: %d ranks joined at %s:%d", len(members), address, port)
    return Sender(members, settings)


def _admit(peer: socket.socket, members: dict[int, socket.socket], world_size: int, deadline: Deadline) -> None:
    """Read a join and keep the connection, or refuse it. A stranger's bytes never stop the gathering."""
    try:
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        magic, rank, claimed = wire.JOIN.unpack(wire.receive_exactly(peer, wire.JOIN.size, _patience(deadline)))
        if magic != wire.MAGIC:
            peer.close()
            return
        reason = refusal(rank, claimed, world_size, members.keys())
        if reason is not None:
            text = reason.encode()
            wire.send_all(peer, wire.REPLY.pack(wire.REJECTED, len(text)) + text, deadline)
            peer.close()
            logger.warning("plane: refused a join: %s", reason)
            return
    except OSError as error:
        peer.close()
        logger.warning("plane: a connection ended before it had joined (%s)", error)
        return
    members[rank] = peer


def _patience(deadline: Deadline) -> Deadline:
    """A connection that says nothing must not use up the whole deadline while others wait to be accepted."""
    return Deadline(min(5.0, deadline.remaining()))


def refusal(rank: int, claimed: int, world_size: int, joined: Container[int]) -> str | None:
    """Why a join is rejected (the texts of docs/tcp-plane.md), or None."""
    if claimed != world_size:
        return f"world size {claimed} differs from the trainer's {world_size}"
    if not 1 <= rank < world_size:
        return f"rank {rank} is outside 1..{world_size - 1}"
    if rank in joined:
        return f"rank {rank} has joined already"
    return None


class Sender:
    """The connections to all receivers. Not thread-safe. After a failure every call raises `GroupBrokenError`."""

    def __init__(self, members: dict[int, socket.socket], settings: Settings) -> None:
        self._members = members
        self._settings = settings
        self._sequence = 0
        self._broken: str | None = None

    def send(self, view: memoryview) -> None:
        """One broadcast of `view`'s bytes, done when they are handed over for every rank.

        Raises `PeerGoneError` or `DeadlineError`; the group is closed then.
        """
        if self._broken is not None:
            raise GroupBrokenError(self._broken)
        deadline = Deadline(self._settings.timeout)
        header = wire.Frame(wire.BROADCAST, self._sequence, len(view)).pack()
        try:
            self._send_to_all([memoryview(header), view], deadline)
        except TimeoutError:
            waited = f"a rank did not take it within {self._settings.timeout:g} s"
            self._fail(DeadlineError(self._sequence, len(view), waited))
        except OSError as error:
            self._fail(PeerGoneError(self._sequence, len(view), f"a rank has gone ({error})"))
        self._sequence += 1

    def close(self) -> None:
        """Leave the group. May be called at any time, and again."""
        if self._broken is None:
            self._broken = "it was closed"
        for peer in self._members.values():
            peer.close()

    def _send_to_all(self, parts: list[memoryview], deadline: Deadline) -> None:
        """To all ranks at once, as fast as each takes it: a slow rank must not hold up the bytes of the others."""
        left = {rank: [part for part in parts if len(part)] for rank in self._members}
        with selectors.DefaultSelector() as selector:
            for rank, peer in self._members.items():
                peer.setblocking(False)
                selector.register(peer, selectors.EVENT_WRITE, rank)
            while left:
                for key, _ in selector.select(deadline.remaining()):
                    pending, peer = left[key.data], self._members[key.data]
                    sent = peer.send(pending[0][: wire.CHUNK_BYTES])
                    pending[0] = pending[0][sent:]
                    if not len(pending[0]):
                        pending.pop(0)
                    if not pending:
                        selector.unregister(peer)
                        del left[key.data]

    def _fail(self, error: BroadcastError) -> None:
        self._broken = str(error)
        for peer in self._members.values():
            with contextlib.suppress(OSError):
                peer.close()
        raise error
