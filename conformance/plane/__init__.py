"""Both halves of the TCP plane, in pure Python: the suite's trainer, and a receiver for servers without NCCL."""

from conformance.plane.errors import (
    BroadcastTimeoutError,
    JoinRejectedError,
    JoinTimeoutError,
    MeetingTimeoutError,
    MismatchError,
    PeerAbortedError,
    PeerGoneError,
    PlaneError,
    ProtocolError,
)
from conformance.plane.packing import DEFAULT_BUFFER_BYTES, packed_groups
from conformance.plane.receiver import Receiver
from conformance.plane.trainer import Trainer

__all__ = [
    "DEFAULT_BUFFER_BYTES",
    "BroadcastTimeoutError",
    "JoinRejectedError",
    "JoinTimeoutError",
    "MeetingTimeoutError",
    "MismatchError",
    "PeerAbortedError",
    "PeerGoneError",
    "PlaneError",
    "ProtocolError",
    "Receiver",
    "Trainer",
    "packed_groups",
]
