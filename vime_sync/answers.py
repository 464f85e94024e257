"""What an engine's answers mean. Success is only what the release sends on the route; everything else is an error.

Follows the bodies of vLLM 0.21.0 (`vllm.entrypoints.serve.rlhf.api_router`, `…serve.cache.api_router`,
`…serve.instrumentator.health`, `…openai.api_server.show_version`, `…openai.models.serving`).
"""

from __future__ import annotations

import json
from typing import Any, NoReturn

from vime_sync.calls import Call
from vime_sync.errors import EngineError, InvalidInfo, MalformedAnswer, OrderError, Refused
from vime_sync.transport import Response

MESSAGES = {
    "/init_weight_transfer_engine": "Weight transfer initialized",
    "/start_weight_update": "Weight update started",
    "/update_weights": "Weights updated",
    "/finish_weight_update": "Weight update finished",
}
STATUSES = {"/pause": "paused", "/resume": "resumed"}

# Wording of vLLM's workers, contained in whatever the executor wraps around it.
_ORDER = (
    "start_weight_update must be called before",
    "called while a weight update is already active",
    "without a matching start",
)
_INVALID = (
    "Invalid init_info for",
    "Invalid update_info for",
    "should be of the same size as `names`",
    "module 'torch' has no attribute",
    "object has no attribute 'get'",
)
_DEV_MODE = "start vLLM with VLLM_SERVER_DEV_MODE=1, and check that the URL is the engine's"


def expect_message(call: Call, response: Response) -> None:
    """Success of one of the four phases: `{"message": …}` with the route's own text. Raises CallError."""
    _expect_field(call, response, "message", MESSAGES[call.route])


def expect_status(call: Call, response: Response) -> None:
    """Success of `/pause` or `/resume`: `{"status": …}` with the route's own text. Raises CallError."""
    _expect_field(call, response, "status", STATUSES[call.route])


def expect_empty(call: Call, response: Response) -> None:
    """A 200 with an empty body. Raises CallError."""
    _expect_ok(call, response)
    if response.body:
        raise _malformed(call, response, "expected an empty body")


def expect_object(call: Call, response: Response) -> dict[str, Any]:
    """A 200 with a JSON object. Raises CallError."""
    _expect_ok(call, response)
    content_type = response.headers.get("content-type", "").split(";")[0].strip().lower()
    if content_type != "application/json":
        raise _malformed(call, response, f"expected JSON, not {content_type or 'an untyped body'}")
    try:
        found = json.loads(response.body.decode("utf-8"))
    except (ValueError, RecursionError):
        raise _malformed(call, response, "the body is not JSON") from None
    if not isinstance(found, dict):
        raise _malformed(call, response, f"expected a JSON object, not {type(found).__name__}")
    return found


def expect_text(call: Call, response: Response, field: str) -> str:
    """The text in `field` of a JSON object, not empty. Raises CallError."""
    found = expect_object(call, response).get(field)
    if not isinstance(found, str) or not found:
        raise _malformed(call, response, f"expected a text in `{field}`")
    return found


def expect_count(call: Call, response: Response, field: str) -> int:
    """The number in `field` of a JSON object, at least 1. Raises CallError."""
    found = expect_object(call, response).get(field)
    if isinstance(found, bool) or not isinstance(found, int) or found < 1:
        raise _malformed(call, response, f"expected a number of at least 1 in `{field}`")
    return found


def expect_flag(call: Call, response: Response, field: str) -> bool:
    """The boolean in `field` of a JSON object. Raises CallError."""
    found = expect_object(call, response).get(field)
    if not isinstance(found, bool):
        raise _malformed(call, response, f"expected true or false in `{field}`")
    return found


def expect_models(call: Call, response: Response) -> list[str]:
    """The ids of `/v1/models`. Raises CallError."""
    listed = expect_object(call, response).get("data")
    if not isinstance(listed, list):
        raise _malformed(call, response, "expected a list in `data`")
    ids = [entry.get("id") if isinstance(entry, dict) else None for entry in listed]
    if not all(isinstance(found, str) for found in ids):
        raise _malformed(call, response, "expected models with an `id`")
    return [str(found) for found in ids]


def expect_schema(call: Call, response: Response, schema: str) -> dict[str, Any]:
    """A JSON object that says it follows `schema` (the mock's own routes). Raises CallError."""
    found = expect_object(call, response)
    if found.get("schema") != schema:
        raise _malformed(call, response, f"expected schema {schema!r}, not {found.get('schema')!r}")
    return found


def _expect_field(call: Call, response: Response, field: str, text: str) -> None:
    found = expect_object(call, response).get(field)
    if found != text:
        raise _malformed(call, response, f"expected `{field}` to be {text!r}")


def _expect_ok(call: Call, response: Response) -> None:
    if response.status >= 400:
        _refuse(call, response)
    if 300 <= response.status < 400:
        raise _malformed(call, response, "redirected, which is not followed")
    if response.status != 200:
        raise _malformed(call, response, "expected status 200")


def _refuse(call: Call, response: Response) -> NoReturn:
    """Raises the kind of Refused that the answer's inner text speaks of.

    From vLLM the text is the better witness: it answers 500 for all that goes wrong behind the HTTP layer.
    """
    detail = refusal_text(response.body)
    kind: type[Refused] = EngineError
    advice = None
    if any(text in detail for text in _ORDER):
        kind = OrderError
    elif response.status in (400, 422) or any(text in detail for text in _INVALID):
        kind = InvalidInfo
    elif response.status == 404:
        advice = _DEV_MODE
    raise kind(call, detail, status=response.status, body=response.body, next_step=advice)


def refusal_text(body: bytes) -> str:
    """The message of an error: `error.message`, a text under `error`, `detail`, else the body itself."""
    text = body.decode("utf-8", errors="replace")
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if isinstance(found, dict):
        error = found.get("error", found.get("detail"))
        if isinstance(error, dict):
            error = error.get("message")
        if isinstance(error, str):
            return error
    return text


def _malformed(call: Call, response: Response, why: str) -> MalformedAnswer:
    return MalformedAnswer(call, why, status=response.status, body=response.body)
