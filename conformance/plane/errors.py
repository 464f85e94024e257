"""What can go wrong on the TCP plane, one class for each way."""

from __future__ import annotations


class PlaneError(RuntimeError):
    """Any failure of the plane."""


class MeetingTimeoutError(PlaneError):
    """The trainer's deadline passed before every rank had joined."""

    def __init__(self, joined: tuple[int, ...], missing: tuple[int, ...]) -> None:
        super().__init__(f"ranks {_ranks(joined)} joined, ranks {_ranks(missing)} did not before the deadline")
        self.joined = joined
        self.missing = missing


class JoinTimeoutError(PlaneError):
    """A receiver found no trainer, or got no reply from it, before its deadline."""

    def __init__(self, address: str, port: int, what: str) -> None:
        super().__init__(f"{what} at {address}:{port} before the deadline")
        self.address = address
        self.port = port


class JoinRejectedError(PlaneError):
    """The trainer refused this receiver."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"the trainer rejected the join: {reason}")
        self.reason = reason


class BroadcastTimeoutError(PlaneError):
    """Nothing arrived, or not all of it, before the deadline."""

    def __init__(self, sequence: int, nbytes: int) -> None:
        super().__init__(f"broadcast {sequence} of {nbytes} bytes did not arrive before the deadline")
        self.sequence = sequence
        self.nbytes = nbytes


class MismatchError(PlaneError):
    """The sender announced another byte count than the receiver expects."""

    def __init__(self, sequence: int, expected: int, announced: int) -> None:
        super().__init__(f"broadcast {sequence}: expected {expected} bytes, the sender announced {announced}")
        self.sequence = sequence
        self.expected = expected
        self.announced = announced


class ProtocolError(PlaneError):
    """Bytes that the wire format does not allow."""


class PeerGoneError(PlaneError):
    """The connection to the other side ended or was reset."""

    def __init__(self, while_doing: str) -> None:
        super().__init__(f"the peer has gone while {while_doing}")
        self.while_doing = while_doing


class PeerAbortedError(PlaneError):
    """The other side sent an abort frame."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"the peer aborted: {reason}")
        self.reason = reason


def _ranks(ranks: tuple[int, ...]) -> str:
    return ", ".join(str(rank) for rank in ranks) or "none"
