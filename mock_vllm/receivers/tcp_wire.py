"""The receiver's half of the TCP plane's wire format (docs/tcp-plane.md)."""

from __future__ import annotations

import struct
from typing import NamedTuple

MAGIC = b"WTPLANE1"
JOIN = struct.Struct(">8sII")
REPLY = struct.Struct(">BI")
FRAME = struct.Struct(">BQQ")

ACCEPTED = 0
BROADCAST = 1
ABORT = 2
MAX_TEXT_BYTES = 64 * 1024


class Frame(NamedTuple):
    """The head of one frame."""

    kind: int
    sequence: int
    nbytes: int


def pack_join(rank: int, world_size: int) -> bytes:
    """Return the 16 bytes with which a receiver asks to join."""
    return JOIN.pack(MAGIC, rank, world_size)


def unpack_frame(head: bytes) -> Frame:
    """Return the head of a frame from its 17 bytes."""
    return Frame(*FRAME.unpack(head))


def pack_abort(sequence: int, reason: str) -> bytes:
    """Return an abort frame with its reason, cut to what a peer will read."""
    text = reason.encode()[:MAX_TEXT_BYTES]
    return FRAME.pack(ABORT, sequence, len(text)) + text
