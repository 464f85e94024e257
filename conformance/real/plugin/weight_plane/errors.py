"""What can go wrong on the plane. Each error keeps its facts as fields; `str()` is one line."""

from __future__ import annotations


class PlaneError(RuntimeError):
    """Base of all errors of the plane. A RuntimeError, as vLLM's own for a failed NCCL call is."""


class SettingError(PlaneError):
    """An environment variable of the plane holds something unusable."""

    def __init__(self, variable: str, value: str, wanted: str) -> None:
        self.variable, self.value, self.wanted = variable, value, wanted
        super().__init__(f"{variable}={value!r}: {wanted} is wanted")


class MeetingError(PlaneError):
    """The group did not come to be: nobody listened, not all joined, or the trainer said no."""

    def __init__(self, address: str, port: object, rank: int, world_size: int, reason: str) -> None:
        self.address, self.port, self.rank, self.world_size, self.reason = address, port, rank, world_size, reason
        super().__init__(f"rank {rank} of {world_size} could not meet at {address}:{port}: {reason}")


class BroadcastError(PlaneError):
    """A broadcast did not arrive or could not be sent. The group must not be used again.

    `sequence` counts the group's broadcasts from 0; `nbytes` is what this side expected to receive or to be taken.
    """

    def __init__(self, sequence: int, nbytes: int, reason: str) -> None:
        self.sequence, self.nbytes, self.reason = sequence, nbytes, reason
        super().__init__(f"broadcast {sequence}, {nbytes} bytes expected: {reason}")


class PeerGoneError(BroadcastError):
    """The connection ended or was reset."""


class AbortedError(BroadcastError):
    """The other side sent an abort, with its reason."""


class ProtocolError(BroadcastError):
    """Another sequence number than expected, or an unknown kind of frame."""


class DeadlineError(BroadcastError):
    """The deadline passed while waiting, after a mismatch or in silence."""


class MismatchError(BroadcastError):
    """The sender announced another byte count, and the plane was told to fail at once."""


class GroupBrokenError(PlaneError):
    """A group that has failed once was used again."""

    def __init__(self, first: str) -> None:
        self.first = first
        super().__init__(f"the group has failed before ({first}): make a new one on a fresh port")
