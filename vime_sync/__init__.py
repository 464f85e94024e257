"""The trainer's side of a weight sync into vLLM: push a checkpoint or a model into a running engine.

    import vime_sync

    report = vime_sync.push("model.safetensors", "http://127.0.0.1:8000")

Needs `requests` alone; torch tensors can be pushed where torch is installed.
"""

from vime_sync._version import __version__
from vime_sync.buckets import Bucket, plan
from vime_sync.checkpoint import Checkpoint, open_checkpoint
from vime_sync.engine import EngineClient, PauseMode
from vime_sync.errors import (
    Abandoned,
    BrokenHeader,
    CallError,
    CallTimeout,
    CheckpointError,
    ConnectError,
    ConnectionClosed,
    DigestMismatch,
    EarlyAnswer,
    EngineError,
    InvalidInfo,
    MalformedAnswer,
    Mismatch,
    MissingFile,
    NeverJoined,
    OrderError,
    PeerGone,
    Refused,
    SettingError,
    Stalled,
    SyncError,
    TransferError,
    TransportError,
    UnsupportedRelease,
    UnsupportedTensor,
    WeightVersionMismatch,
)
from vime_sync.progress import Progress, ProgressBar
from vime_sync.pushing import push
from vime_sync.releases import Release, release_of
from vime_sync.report import PushReport
from vime_sync.session import SessionState, WeightUpdateSession
from vime_sync.status import EngineStatus, engine_status
from vime_sync.tensors import TensorSource, from_torch
from vime_sync.timeouts import Timeouts
from vime_sync.transport import HttpTransport, Response, Transport

__all__ = [
    "Abandoned",
    "BrokenHeader",
    "Bucket",
    "CallError",
    "CallTimeout",
    "Checkpoint",
    "CheckpointError",
    "ConnectError",
    "ConnectionClosed",
    "DigestMismatch",
    "EarlyAnswer",
    "EngineClient",
    "EngineError",
    "EngineStatus",
    "HttpTransport",
    "InvalidInfo",
    "MalformedAnswer",
    "Mismatch",
    "MissingFile",
    "NeverJoined",
    "OrderError",
    "PauseMode",
    "PeerGone",
    "Progress",
    "ProgressBar",
    "PushReport",
    "Refused",
    "Release",
    "Response",
    "SessionState",
    "SettingError",
    "Stalled",
    "SyncError",
    "TensorSource",
    "Timeouts",
    "TransferError",
    "Transport",
    "TransportError",
    "UnsupportedRelease",
    "UnsupportedTensor",
    "WeightUpdateSession",
    "WeightVersionMismatch",
    "__version__",
    "engine_status",
    "from_torch",
    "open_checkpoint",
    "plan",
    "push",
    "release_of",
]
