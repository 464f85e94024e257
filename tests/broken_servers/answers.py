"""Servers whose answers are other on their way out."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tests.broken_servers.broken_server import Answer, Rewrite

Change = Callable[[Answer, Any], Any]


def json_where(applies: Callable[[Answer], bool], change: Callable[[Any], Any]) -> Rewrite:
    """Rewrite the JSON body of the answers that `applies` picks."""

    def rewrite(answer: Answer) -> Answer:
        if not applies(answer) or not answer.body or answer.path.startswith("/mock/"):
            return answer
        return answer.with_body(json.dumps(change(json.loads(answer.body)), separators=(",", ":")).encode())

    return rewrite


def at(path: str, status: int = 200) -> Callable[[Answer], bool]:
    """Pick the answers of one route with one status."""
    return lambda answer: (answer.path, answer.status) == (path, status)


def with_status(status: int) -> Callable[[Answer], bool]:
    """Pick the answers with one status."""
    return lambda answer: answer.status == status


def envelope_for_detail(body: Any) -> Any:
    """Put FastAPI's own `detail` into vLLM's envelope."""
    if "detail" not in body:
        return body
    return {"error": {"message": body["detail"], "type": "Not Found", "param": None, "code": 404}}


def shout(body: Any) -> Any:
    """Say the message of an error in capitals."""
    error = body.get("error")
    if not isinstance(error, dict):
        return body
    return {"error": {**error, "message": error["message"].upper()}}


def without_code(body: Any) -> Any:
    """Leave the code out of the envelope."""
    return {"error": {key: value for key, value in body["error"].items() if key != "code"}} if "error" in body else body


def status_as(applies: Callable[[Answer], bool], status: int) -> Rewrite:
    """Give the answers that `applies` picks another status."""
    return lambda answer: replace(answer, status=status) if applies(answer) else answer


def content_type_as(applies: Callable[[Answer], bool], content_type: bytes) -> Rewrite:
    """Give the answers that `applies` picks another content type."""

    def rewrite(answer: Answer) -> Answer:
        if not applies(answer) or answer.path.startswith("/mock/"):
            return answer
        headers = [(name, content_type if name == b"content-type" else value) for name, value in answer.headers]
        return replace(answer, headers=headers)

    return rewrite


def closing(applies: Callable[[Answer], bool]) -> Rewrite:
    """Close the connection after the answers that `applies` picks."""

    def rewrite(answer: Answer) -> Answer:
        if not applies(answer) or answer.path.startswith("/mock/"):
            return answer
        return replace(answer, headers=[*answer.headers, (b"connection", b"close")])

    return rewrite


def json_for_empty(path: str) -> Rewrite:
    """Answer `{"success": true}` where the release answers nothing (0.26 does)."""

    def rewrite(answer: Answer) -> Answer:
        if answer.path != path or answer.status != 200:
            return answer
        headers = [*answer.headers, (b"content-type", b"application/json")]
        return replace(answer, headers=headers).with_body(b'{"success":true}')

    return rewrite
