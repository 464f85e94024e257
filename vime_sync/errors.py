"""Every error that this package raises on purpose.

    SyncError
    ├── SettingError            an argument or an environment variable is unusable (also a ValueError)
    ├── CheckpointError         file, tensor
    │   ├── MissingFile
    │   ├── BrokenHeader
    │   └── UnsupportedTensor   no form of transfer can carry it
    ├── UnsupportedRelease      release
    ├── CallError               route, engine, phase, bucket
    │   ├── TransportError      no answer, or none that can be read
    │   │   ├── ConnectError
    │   │   ├── CallTimeout
    │   │   ├── ConnectionClosed
    │   │   └── MalformedAnswer status, body
    │   └── Refused             the engine answered, with an error: status, body, detail
    │       ├── OrderError      the session rules forbid the call
    │       ├── InvalidInfo     the request is at fault
    │       └── EngineError     anything else; vLLM does not tell a client's mistake from a server's fault
    └── TransferError           bucket
        ├── NeverJoined         joined, missing, rejected
        ├── PeerGone            rank, reason
        ├── Stalled             sent, total
        ├── Abandoned           the trainer itself gave the group up
        ├── EarlyAnswer         success was announced before the bytes were out
        ├── Mismatch            a source yields other bytes than it announced
        ├── DigestMismatch      names, by_rank
        └── WeightVersionMismatch  sent, found

`str(error)` says what went wrong. `error.state` says what the engine was left in and `error.next_step` what to do; both
are filled in by `push`, which knows, and are None where nothing is known.
"""

# ruff: noqa: N818 (the names say what happened, as `requests` and `httpx` do; the root alone says Error)

from __future__ import annotations

from collections.abc import Mapping, Sequence

from vime_sync.calls import Call
from vime_sync.redaction import shortened
from vime_sync.wording import counted, ranks, some


class SyncError(Exception):
    """Root of the tree. `state` and `next_step` are one sentence each, or None."""

    def __init__(self, message: str, *, next_step: str | None = None) -> None:
        super().__init__(message)
        self.state: str | None = None
        self.next_step = next_step

    def line(self) -> str:
        """The error on one line: what, the state of the engine, what to do."""
        parts = [str(self), self.state, f"next: {self.next_step}" if self.next_step else None]
        return "; ".join(" ".join(part.split()) for part in parts if part)


class SettingError(SyncError, ValueError):
    """An argument or an environment variable that cannot be used; `setting` names it."""

    def __init__(self, setting: str, message: str, *, next_step: str | None = None) -> None:
        super().__init__(f"{setting}: {message}", next_step=next_step)
        self.setting = setting


class CheckpointError(SyncError):
    """The checkpoint cannot be read. `tensor` is None where the file as a whole is at fault."""

    def __init__(self, file: str, message: str, *, tensor: str | None = None, next_step: str | None = None) -> None:
        where = f"{file}: tensor {tensor!r}" if tensor is not None else file
        super().__init__(f"{where}: {message}", next_step=next_step)
        self.file = file
        self.tensor = tensor


class MissingFile(CheckpointError):
    """A file of the checkpoint is absent."""


class BrokenHeader(CheckpointError):
    """A header or an index is not what its format says."""


class UnsupportedTensor(CheckpointError):
    """No form of transfer can carry this tensor into the release."""


class UnsupportedRelease(SyncError):
    """The engine's release cannot do what was asked, or is not known. `release` is its version string."""

    def __init__(self, release: str, message: str, *, next_step: str | None = None) -> None:
        super().__init__(message, next_step=next_step)
        self.release = release


class CallError(SyncError):
    """A call of a route did not succeed. Fields: `route`, `engine`, `phase`, `bucket` (from 0, or None)."""

    def __init__(self, call: Call, message: str, *, next_step: str | None = None) -> None:
        super().__init__(f"{call}: {message}", next_step=next_step)
        self.call = call
        self.route = call.route
        self.engine = call.engine
        self.phase = call.phase
        self.bucket = call.bucket


class TransportError(CallError):
    """There was no answer, or none that can be read: what the engine did is not known."""


class ConnectError(TransportError):
    """No connection could be made, so the engine has not seen the call."""


class CallTimeout(TransportError):
    """The deadline passed first. `seconds` is the deadline that did."""

    def __init__(self, call: Call, message: str, *, seconds: float, next_step: str | None = None) -> None:
        super().__init__(call, message, next_step=next_step)
        self.seconds = seconds


class ConnectionClosed(TransportError):
    """The connection ended before the answer was whole."""


class MalformedAnswer(TransportError):
    """An answer that this release does not send on this route. Fields: `status`, `body` (cut, cleaned)."""

    def __init__(self, call: Call, message: str, *, status: int, body: bytes = b"") -> None:
        self.status = status
        self.body = shortened(body)
        shown = f": {self.body}" if self.body else ""
        super().__init__(call, f"{message} (status {status}{shown})")


class Refused(CallError):
    """The engine answered with an error. Fields: `status`, `detail` (its message), `body` (cut, cleaned)."""

    def __init__(
        self, call: Call, detail: str, *, status: int, body: bytes = b"", next_step: str | None = None
    ) -> None:
        self.status = status
        self.detail = shortened(detail)
        self.body = shortened(body)
        super().__init__(call, f"refused with status {status}: {self.detail or '(empty body)'}", next_step=next_step)


class OrderError(Refused):
    """The session rules forbid this call now."""


class InvalidInfo(Refused):
    """What the request carries is at fault."""


class EngineError(Refused):
    """Any other refusal. vLLM answers 500 for a client's mistake and a server's fault alike."""


class TransferError(SyncError):
    """The tensors did not travel. `bucket` counts from 0; None before the first one."""

    def __init__(self, message: str, *, bucket: int | None = None, next_step: str | None = None) -> None:
        super().__init__(message, next_step=next_step)
        self.bucket = bucket

    def __str__(self) -> str:
        text = super().__str__()
        return text if self.bucket is None else f"bucket {self.bucket + 1}: {text}"


class NeverJoined(TransferError):
    """Not every rank joined. `rejected` holds the reasons given to those that were turned away."""

    def __init__(
        self, message: str, *, joined: Sequence[int], missing: Sequence[int], rejected: Sequence[str] = ()
    ) -> None:
        who = f"joined: {ranks(joined)}, missing: {ranks(missing)}"
        turned_away = f", rejected: {'; '.join(rejected[:5])}" if rejected else ""
        super().__init__(f"{message} ({who}{turned_away})")
        self.joined = tuple(joined)
        self.missing = tuple(missing)
        self.rejected = tuple(rejected)


class PeerGone(TransferError):
    """A receiver left. `reason` is what its abort said, or None when the connection just ended."""

    def __init__(self, rank: int, message: str, *, reason: str | None = None) -> None:
        super().__init__(f"rank {rank} {message}" + (f": {shortened(reason)}" if reason else ""))
        self.rank = rank
        self.reason = reason


class Stalled(TransferError):
    """The deadline passed while bytes were still to be handed over. `sent` of `total` bytes were."""

    def __init__(self, message: str, *, sent: int, total: int) -> None:
        super().__init__(message)
        self.sent = sent
        self.total = total


class Abandoned(TransferError):
    """This side gave the group up."""


class EarlyAnswer(TransferError):
    """The engine announced success for a bucket whose bytes it cannot have received."""


class Mismatch(TransferError):
    """A tensor yields other bytes than its metadata announced. `name` is the tensor's."""

    def __init__(self, name: str, announced: int, got: int) -> None:
        super().__init__(f"tensor {name!r}: announced {announced} bytes, its source gave {got}")
        self.name = name
        self.announced = announced
        self.got = got


class DigestMismatch(TransferError):
    """What the engine holds is not what was sent. `names`: all tensors concerned, sorted; `by_rank`: why, per rank."""

    def __init__(self, by_rank: Mapping[int, Mapping[str, str]]) -> None:
        self.by_rank = {rank: dict(found) for rank, found in by_rank.items()}
        self.names = tuple(sorted({name for found in self.by_rank.values() for name in found}))
        shown = []
        for rank, found in sorted(self.by_rank.items()):
            listed = [f"{name} ({why})" for name, why in sorted(found.items())]
            shown.append(f"rank {rank}: {some(listed)}")
        super().__init__(f"digests differ for {counted(len(self.names), 'tensor')}: {'; '.join(shown)}")


class WeightVersionMismatch(TransferError):
    """The engine calls its weights something else than it was told. Fields: `sent`, `found`."""

    def __init__(self, sent: str, found: str) -> None:
        super().__init__(f"the engine calls its weights {shortened(found)!r}, not {shortened(sent)!r} as it was told")
        self.sent = sent
        self.found = found
