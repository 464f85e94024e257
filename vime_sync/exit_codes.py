"""What the command's exit status means."""

from __future__ import annotations

from vime_sync.errors import (
    CheckpointError,
    DigestMismatch,
    Refused,
    SettingError,
    TransferError,
    TransportError,
    UnsupportedRelease,
    WeightVersionMismatch,
)
from vime_sync.termination import Terminated

OK = 0
UNEXPECTED = 1
USAGE = 2
CHECKPOINT = 3
TRANSPORT = 4
REFUSED = 5
TRANSFER = 6
DIGESTS = 7
INTERRUPTED = 130
TERMINATED = 143

HELP = """\
exit status:
  0    done; the digests agree, where the server shows any
  1    unexpected error
  2    usage: an argument or an environment variable
  3    checkpoint: missing, broken, or a tensor that cannot be sent
  4    the engine cannot be reached, or did not answer in time or readably
  5    refused by the engine, or its release is not supported
  6    the tensors did not travel
  7    the engine holds other weights than those sent, or calls them otherwise
  130  interrupted
  143  terminated
"""

# The first that fits, so subclasses come before their bases.
_CODES: tuple[tuple[type[BaseException], int], ...] = (
    (DigestMismatch, DIGESTS),
    (WeightVersionMismatch, DIGESTS),
    (TransferError, TRANSFER),
    (TransportError, TRANSPORT),
    (Refused, REFUSED),
    (UnsupportedRelease, REFUSED),
    (CheckpointError, CHECKPOINT),
    (SettingError, USAGE),
    (Terminated, TERMINATED),
    (KeyboardInterrupt, INTERRUPTED),
)


def exit_code(error: BaseException) -> int:
    """The exit status for an error."""
    return next((code for kind, code in _CODES if isinstance(error, kind)), UNEXPECTED)
