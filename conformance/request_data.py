"""What a step sends, and the line that stands for it in truth files and reports."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from conformance.plane.packing import DEFAULT_BUFFER_BYTES, packed_groups
from conformance.steps import (
    JSON_TYPE,
    Absent,
    AnswerOf,
    Begin,
    Broadcast,
    Call,
    Dies,
    Healthy,
    Holds,
    Init,
    LeaveGroup,
    Meet,
    ModelEquals,
    Placeholder,
    ReceivedEqualsSent,
    Step,
    StillPending,
    Tokens,
    Update,
)

INIT_PATH = "/init_weight_transfer_engine"
START_PATH = "/start_weight_update"
UPDATE_PATH = "/update_weights"
FINISH_PATH = "/finish_weight_update"
_LONGEST_BODY = 400


def init_body(step: Init) -> dict[str, object]:
    """The body of an init request, placeholders included."""
    info: dict[str, object] = {
        "master_address": Placeholder.ADDRESS,
        "master_port": Placeholder.PORT,
        "rank_offset": 1,
        "world_size": Placeholder.WORLD_SIZE,
    }
    info.update(step.info)
    for key in step.drop:
        del info[key]
    return {"init_info": info, **step.beside}


def packing_of(step: Update) -> dict[str, object]:
    """The keys that say how an update is packed: in its own body, or in the init's where a release wants them there."""
    packing: dict[str, object] = {"packed": True} if step.packed else {}
    if step.buffer_bytes is not None:
        packing["packed_buffer_size_bytes"] = step.buffer_bytes
    return packing


def update_body(step: Update) -> dict[str, object]:
    """The body of an update request."""
    info: dict[str, object] = {
        "names": [tensor.name for tensor in step.tensors],
        "dtype_names": [tensor.dtype for tensor in step.tensors],
        "shapes": [list(tensor.shape) for tensor in step.tensors],
    }
    if not step.packed_at_init:
        info.update(packing_of(step))
    info.update(step.announce)
    for key in step.drop:
        del info[key]
    return {"update_info": [info] if step.as_array else info, **step.beside}


def broadcasts_of(step: Update) -> tuple[bytes, ...]:
    """What the trainer broadcasts for an update, one entry a broadcast."""
    if step.broadcasts is not None:
        return step.broadcasts
    if not step.packed:
        return tuple(tensor.data for tensor in step.tensors)
    limit = DEFAULT_BUFFER_BYTES if step.buffer_bytes is None else step.buffer_bytes
    groups = packed_groups([tensor.nbytes for tensor in step.tensors], limit)
    return tuple(b"".join(step.tensors[index].data for index in group) for group in groups)


def resolve(value: object, known: Mapping[Placeholder, object]) -> Any:
    """``value`` with every placeholder replaced. Raises KeyError for one that is not known."""
    if isinstance(value, Placeholder):
        return known[value]
    if isinstance(value, Mapping):
        return {key: resolve(item, known) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [resolve(item, known) for item in value]
    return value


def _shortened(text: str) -> str:
    if len(text) <= _LONGEST_BODY:
        return text
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    return f"{text[:_LONGEST_BODY]}… ({len(text)} characters, sha256 {digest})"


def _dumped(value: object) -> str:
    return json.dumps(value, default=lambda item: item.value, ensure_ascii=True)


def _json_text(value: object) -> str:
    return _shortened(_dumped(value))


def _typed(line: str, content_type: str | None) -> str:
    if content_type == JSON_TYPE:
        return line
    return f"{line} ({'no content type' if content_type is None else content_type})"


def call_of(step: Call | Init | Update) -> Call:
    """The HTTP request of a step, placeholders included."""
    if isinstance(step, Init):
        return Call("POST", INIT_PATH, json=init_body(step), content_type=step.content_type)
    if isinstance(step, Update):
        return Call("POST", UPDATE_PATH, json=update_body(step), content_type=step.content_type)
    return step


def _call_text(call: Call) -> str:
    if call.raw is not None:
        body = _shortened(repr(call.raw)[1:])
    elif call.json is Absent.BODY:
        body = ""
    else:
        body = _json_text(call.json)
    return _typed(f"{call.method} {call.path} {body}".rstrip(), call.content_type if body else JSON_TYPE)


def _broadcast_text(sizes: Sequence[int]) -> str:
    return f"; broadcasts {'+'.join(str(size) for size in sizes)} bytes" if sizes else "; no broadcast"


def request_text(step: Call | Init | Update) -> str:
    """One line for a request: method, path, body, and what is broadcast beside it."""
    text = _call_text(call_of(step))
    if isinstance(step, Update):
        text += _broadcast_text([len(data) for data in broadcasts_of(step)])
    elif isinstance(step, Init) and not step.meets:
        text += "; the trainer lets nobody in yet"
    return text


def describe(step: Step) -> str:
    """One line for any step."""
    match step:
        case Call() | Init() | Update():
            return request_text(step)
        case Begin(label, begun):
            return f"[{label}] {request_text(begun)}"
        case AnswerOf(label):
            return f"answer of [{label}]"
        case StillPending(labels):
            return "still pending: " + ", ".join(f"[{label}]" for label in labels)
        case Meet():
            return "the trainer lets the ranks in"
        case Broadcast(data, None):
            return f"broadcast {len(data)} bytes"
        case Broadcast(data, only):
            return f"broadcast {only} of {len(data)} announced bytes"
        case LeaveGroup(None):
            return "the trainer leaves"
        case LeaveGroup(reason):
            return f"the trainer aborts: {reason}"
        case Healthy():
            return "GET /health on another connection"
        case ReceivedEqualsSent():
            return "received equals sent"
        case Holds(tensors):
            return "the server received " + ", ".join(tensor.name for tensor in tensors)
        case ModelEquals(checkpoint):
            return f"the received model equals checkpoint {checkpoint}"
        case Tokens(label):
            return f"a greedy completion [{label}]"
        case Dies():
            return "the server's process ends"


def requests_of(steps: Sequence[Step]) -> tuple[tuple[str, str, str, str], ...]:
    """Method, path, whole body and content type of every HTTP request of a case, in order."""
    found = []
    for step in steps:
        inner = step.step if isinstance(step, Begin) else step
        if isinstance(inner, Call | Init | Update):
            call = call_of(inner)
            body = repr(call.raw) if call.raw is not None else "" if call.json is Absent.BODY else _dumped(call.json)
            found.append((call.method, call.path, body, str(call.content_type)))
    return tuple(found)
