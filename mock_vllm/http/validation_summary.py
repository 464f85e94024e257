"""Validation errors as later releases word them: a line an error, inputs shortened, no file.

Follows vLLM 0.32.0, `vllm.entrypoints.serve.exception_handling` (form since 0.30).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

_MOST_ERRORS = 10
_MOST_INPUT_CHARACTERS = 200
_MOST_ERROR_CHARACTERS = 1000
_CUT = "...[truncated]"

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+>")
_FRAME = re.compile(r'\n?\s*File "[^"]+", line \d+, in \S+(?:\n\s+.*)?')
_SYSTEM_PATH = re.compile(r"/(?:home|usr|opt|var|tmp|root|lib|mnt|srv)(?:/[\w.\-]+)+")
_FILE_PATH = re.compile(r"(?:/[\w\-]+)+/[\w\-]+\.\w+")
_TYPE_NAMES = frozenset({"dict", "list", "str", "int", "float", "bool", "none", "nullable", "union", "default"})


def summarise(errors: Sequence[Any]) -> tuple[str, str | None]:
    """Return the message for FastAPI's list of errors, and the parameter that the first one is about."""
    errors = _null_is_missing(errors)
    if not errors:
        return "Validation error", None
    label = "error" if len(errors) == 1 else "errors"
    lines = [f"{len(errors)} validation {label}:", *(f"  {_one(error)}" for error in errors[:_MOST_ERRORS])]
    if len(errors) > _MOST_ERRORS:
        lines.append(f"  ...and {len(errors) - _MOST_ERRORS} more {label}")
    location = errors[0].get("loc")
    return "\n".join(lines).rstrip(), dotted(location) if location else None


def dotted(location: Sequence[Any]) -> str:
    """Join a location, without the parts that name a type of pydantic's and not a field."""
    parts = [str(part) for part in location]
    fields = [part for part in parts if part.lower() not in _TYPE_NAMES and not re.search(r"[\[\](){}]", part)]
    return ".".join(fields or parts)


def hide_paths(message: str) -> str:
    """Take memory addresses, stack frames and file paths out of a message."""
    message = _FRAME.sub("", _ADDRESS.sub(">", message))
    return _FILE_PATH.sub("<path>", _SYSTEM_PATH.sub("<path>", message)).strip()


def _null_is_missing(errors: Sequence[Any]) -> list[Any]:
    """Say of a body's key that is null that it is missing, as the FastAPI that vLLM pins does; later ones do not."""
    said: list[Any] = []
    for error in errors:
        location = tuple(error.get("loc", ()))
        if location[:1] == ("body",) and len(location) > 1 and error.get("input", error) is None:
            error = {"type": "missing", "loc": location[:2], "msg": "Field required", "input": None}
        if error not in said:
            said.append(error)
    return said


def _one(error: dict[str, Any]) -> str:
    shown = dict(error)
    if "input" in shown:
        shown["input"] = _input(shown["input"])
    if isinstance(shown.get("loc"), tuple | list):
        shown["loc"] = dotted(shown["loc"])
    return _cut(str(shown), _MOST_ERROR_CHARACTERS)


def _input(value: Any) -> str:
    if isinstance(value, bytes | bytearray):
        return f"<{type(value).__name__} of {len(value)} bytes>"
    if isinstance(value, list | tuple | set | frozenset | dict):
        return f"<{type(value).__name__} of {len(value)} items>"
    return _cut(str(value), _MOST_INPUT_CHARACTERS)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[:most] + _CUT
