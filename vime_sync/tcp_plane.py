"""The bytes of the TCP plane: joins, replies and frame headers (docs/tcp-plane.md)."""

from __future__ import annotations

import struct
from dataclasses import dataclass

MAGIC = b"WTPLANE1"
JOIN_BYTES = 16
FRAME_HEADER_BYTES = 17
BROADCAST = 1
ABORT = 2
ACCEPTED = 0
REJECTED = 1
# A receiver's abort carries a sentence; anything longer is not one.
LONGEST_REASON = 64 * 1024

_JOIN = struct.Struct(">8sII")
_REPLY = struct.Struct(">BI")
_FRAME = struct.Struct(">BQQ")


@dataclass(frozen=True, slots=True)
class Join:
    """What a receiver says when it connects: its rank, from 1, and the world size, the trainer included."""

    rank: int
    world_size: int

    def objection(self, world_size: int, joined: frozenset[int]) -> str | None:
        """Why a trainer with this world size, and these ranks already there, must reject it; None when it need not."""
        if self.world_size != world_size:
            return f"world size {self.world_size} differs from the trainer's {world_size}"
        if not 1 <= self.rank < world_size:
            return f"rank {self.rank} is outside 1..{world_size - 1}"
        if self.rank in joined:
            return f"rank {self.rank} has joined already"
        return None


def decode_join(message: bytes) -> Join | None:
    """A whole join of 16 bytes, or None when it does not begin with the magic."""
    magic, rank, world_size = _JOIN.unpack(message)
    return Join(rank, world_size) if magic == MAGIC else None


def encode_reply(reason: str | None) -> bytes:
    """Accepted for None, else rejected with the reason."""
    text = (reason or "").encode()
    return _REPLY.pack(ACCEPTED if reason is None else REJECTED, len(text)) + text


def encode_frame_header(kind: int, sequence: int, count: int) -> bytes:
    """The 17 bytes before a frame's own: kind, sequence number, byte count."""
    return _FRAME.pack(kind, sequence, count)


def decode_frame_header(header: bytes) -> tuple[int, int, int]:
    """Kind, sequence number and byte count of a frame header of 17 bytes."""
    kind, sequence, count = _FRAME.unpack(header)
    return int(kind), int(sequence), int(count)
