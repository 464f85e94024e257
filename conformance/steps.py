"""The vocabulary of a case: what the suite can do to a server, as data.

Nothing here talks to a server: ``request_data`` says what each step sends, ``case_run`` sends it.
Where a step has ``wording`` False, its answer's message is the data plane's and not vLLM's, and is not compared.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from conformance.tensor import Tensor

JSON_TYPE = "application/json"


class Placeholder(Enum):
    """A value that is known only when a case runs."""

    ADDRESS = "<address>"
    PORT = "<port>"
    PORT_AS_TEXT = "<port as text>"
    WORLD_SIZE = "<world size>"
    WORLD_SIZE_PLUS_ONE = "<world size + 1>"
    MODEL = "<model>"


class Absent(Enum):
    """The body that is not there (``None`` would be JSON's null)."""

    BODY = "no body"


@dataclass(frozen=True)
class Call:
    """One HTTP request. ``raw`` wins over ``json``; ``content_type`` None sends no such header."""

    method: str
    path: str
    json: object = Absent.BODY
    raw: bytes | None = None
    content_type: str | None = JSON_TYPE


@dataclass(frozen=True)
class Init:
    """The trainer listens on a free port; the request goes out; the ranks join; the answer is read.

    ``info`` overrides fields of ``init_info``, ``drop`` leaves some out, ``beside`` adds top-level keys. With
    ``meets`` False the trainer listens but answers no join until a ``Meet`` step.
    """

    info: Mapping[str, object] = field(default_factory=dict)
    drop: tuple[str, ...] = ()
    beside: Mapping[str, object] = field(default_factory=dict)
    content_type: str | None = JSON_TYPE
    meets: bool = True
    wording: bool = True


@dataclass(frozen=True)
class Meet:
    """The trainer of an ``Init(meets=False)`` lets the ranks in."""


@dataclass(frozen=True)
class Update:
    """One bucket: the request goes out, the tensors are broadcast, the answer is read.

    ``announce`` overrides keys of ``update_info``, ``drop`` leaves some out, ``beside`` adds top-level keys;
    ``broadcasts`` replaces what is really sent (one entry a broadcast), ``()`` sends nothing.
    ``buffer_bytes`` is announced as ``packed_buffer_size_bytes``; it makes cuts only where ``packed``. With
    ``packed_at_init`` neither is announced here, since the group's init has said both (``dialect``). ``as_array`` wraps
    ``update_info`` into an array of one entry, for one worker.
    """

    tensors: tuple[Tensor, ...] = ()
    packed: bool = False
    buffer_bytes: int | None = None
    announce: Mapping[str, object] = field(default_factory=dict)
    drop: tuple[str, ...] = ()
    beside: Mapping[str, object] = field(default_factory=dict)
    broadcasts: tuple[bytes, ...] | None = None
    content_type: str | None = JSON_TYPE
    wording: bool = True
    packed_at_init: bool = False
    as_array: bool = False


@dataclass(frozen=True)
class Broadcast:
    """The trainer broadcasts ``data``; with ``only``, it announces all of it but sends just that many bytes."""

    data: bytes
    only: int | None = None


@dataclass(frozen=True)
class LeaveGroup:
    """The trainer closes its connections; with ``reason`` it sends an abort frame first."""

    reason: str | None = None


@dataclass(frozen=True)
class Begin:
    """Sends the request of ``step`` (and its broadcasts) without reading the answer."""

    label: str
    step: Call | Init | Update


@dataclass(frozen=True)
class StillPending:
    """None of the begun requests has an answer after ``seconds`` (a mock is given a shorter time)."""

    labels: tuple[str, ...]
    seconds: float = 0.5


@dataclass(frozen=True)
class AnswerOf:
    """Reads the answer of a begun request."""

    label: str
    wording: bool = True


@dataclass(frozen=True)
class Healthy:
    """``GET /health`` on a connection of its own answers 200 at once, whatever the engine is doing."""


@dataclass(frozen=True)
class ReceivedEqualsSent:
    """Every tensor of this case's accepted updates arrived byte for byte, and no other."""


@dataclass(frozen=True)
class Holds:
    """The last bytes that the server received under these names are exactly these, kept by its loader or not."""

    tensors: tuple[Tensor, ...]


@dataclass(frozen=True)
class ModelEquals:
    """All 25 tensors as the server received them are those of checkpoint ``"A"`` or ``"B"``.

    A server that tells what it holds and uses (the mock) must hold and use the same.
    """

    checkpoint: str


@dataclass(frozen=True)
class Tokens:
    """A greedy completion, of which only this is compared: which earlier ones of the case it equals.

    What a model writes differs between processors; that other weights write something else, and the same ones the
    same, does not. It shows what the server uses, where the digests show what it received.
    """

    label: str


@dataclass(frozen=True)
class Dies:
    """The server answers no request any more within ``seconds``: its process has ended."""

    seconds: float = 15.0


Step = (
    Call
    | Init
    | Meet
    | Update
    | Broadcast
    | LeaveGroup
    | Begin
    | StillPending
    | AnswerOf
    | Healthy
    | ReceivedEqualsSent
    | Holds
    | ModelEquals
    | Tokens
    | Dies
)
