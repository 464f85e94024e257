"""The bytes of the TCP plane's join, reply and frame."""

from __future__ import annotations

import struct

MAGIC = b"WTPLANE1"
JOIN = struct.Struct(">8sII")
"""Magic, rank, world size."""
REPLY = struct.Struct(">BI")
"""Status, length of the text that follows."""
FRAME = struct.Struct(">BQQ")
"""Kind, sequence number, byte count."""

ACCEPTED = 0
REJECTED = 1
BROADCAST = 1
ABORT = 2

LONGEST_REASON = 64 * 1024
"""Bytes of a rejection's or abort's text that a reader accepts; a longer one is not this protocol."""


def join(rank: int, world_size: int) -> bytes:
    """The 16 bytes with which a receiver joins."""
    return JOIN.pack(MAGIC, rank, world_size)


def reply(status: int, text: str = "") -> bytes:
    """The trainer's answer to a join."""
    encoded = text.encode()
    return REPLY.pack(status, len(encoded)) + encoded


def header(kind: int, sequence: int, count: int) -> bytes:
    """The 17 bytes before a frame's data."""
    return FRAME.pack(kind, sequence, count)
