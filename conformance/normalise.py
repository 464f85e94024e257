"""The volatile parts of an answer, replaced by named spans so that two runs can be compared.

Applied to what was recorded and to what is compared with it alike; applying it twice changes nothing.
"""

from __future__ import annotations

import re

SPANS: dict[str, str] = {
    "<path>": "a file path on the server's machine",
    "<memory address>": "an object's address in memory",
    "<host>:<port>": "an endpoint of this run",
    "<port>": "the port at which the trainer listened",
    "<model>": "the served model's id",
    "<id>": "a random identifier",
    "<text>": "what the model wrote",
    "<fingerprint>": "a digest of the server's configuration",
    "<digest>": "a sha256 of weights as this machine holds them",
    "<time>": "a time in seconds since 1970",
    "<length>": "the longest context, which the launch decides",
    "<data plane's message>": "a text of the data plane, which is not vLLM's",
}
"""Every span and what it stands for; written into truth files."""

PLANE_MESSAGE = "<data plane's message>"

_PATTERNS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r'File "[^"\n]*"'), 'File "<path>"'),
    (re.compile(r"\b0x[0-9a-fA-F]{6,}\b"), "<memory address>"),
    (re.compile(r"(?:127\.0\.0\.1|0\.0\.0\.0|localhost|\[::1?\]):\d+"), "<host>:<port>"),
    (re.compile(r"\b(?:modelperm|cmpl)-[0-9a-f-]+"), "<id>"),
    (re.compile(r"\b[0-9a-f]{64}\b"), "<digest>"),
    (re.compile(r"\b(vllm-\d+\.\d+\.\d+)-[0-9a-f]{8}\b"), r"\1-<fingerprint>"),
)
_PRINTED_SET = re.compile(r"\{'[^{}:]*'\}")
_INTEGER_KEYS = {"created": "<time>", "max_model_len": "<length>"}
_MODEL_KEYS = ("id", "root", "model")


def _sorted_set(match: re.Match[str]) -> str:
    # Python prints a set of strings in an order that changes with every process.
    return "{" + ", ".join(sorted(match.group()[1:-1].split(", "))) + "}"


def normalise_text(text: str) -> str:
    """``text`` with its volatile spans named."""
    for pattern, replacement in _PATTERNS:
        text = pattern.sub(replacement, text)
    return _PRINTED_SET.sub(_sorted_set, text)


def without_endpoint(text: str, host: str, port: int) -> str:
    """``text`` with the server's own endpoint named, as the suite addresses it: ``host:port``, IPv6 in brackets."""
    shown = f"[{host}]" if ":" in host else host
    return re.sub(rf"(?<![\w.-]){re.escape(shown)}:{port}(?!\d)", "<host>:<port>", text)


def normalise(value: object, key: str = "") -> object:
    """A JSON value with its volatile spans named; ``key`` is the name under which an object holds it.

    Only texts and the integers that are times or lengths change; a value of another type stays, and so shows.
    """
    if isinstance(value, str):
        named = normalise_text(value)
        return "<model>" if key in _MODEL_KEYS and named != "<id>" else named
    if isinstance(value, dict) and "finish_reason" in value and "text" in value:
        value = {**value, "text": "<text>"}
    if isinstance(value, dict):
        return {name: normalise(item, name) for name, item in value.items()}
    if isinstance(value, list):
        return [normalise(item) for item in value]
    if isinstance(value, int) and not isinstance(value, bool) and key in _INTEGER_KEYS:
        return _INTEGER_KEYS[key]
    return value


def without_plane_message(body: object) -> object:
    """An error body whose message is replaced by a span, since the data plane wrote it; other bodies unchanged."""
    if isinstance(body, dict) and isinstance(body.get("error"), dict) and isinstance(body["error"].get("message"), str):
        return {**body, "error": {**body["error"], "message": PLANE_MESSAGE}}
    return body
