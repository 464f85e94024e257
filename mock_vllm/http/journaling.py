"""The outermost layer of the application: marks every answer as a mock's, and keeps the journal."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from mock_vllm._version import __version__
from mock_vllm.journal import MAX_BODY_CHARACTERS, Journal

logger = logging.getLogger("mock_vllm.calls")

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
AsgiApp = Callable[[Scope, Receive, Send], Awaitable[None]]

IDENTITY_HEADER = b"x-mock-vllm"
_KEPT_BYTES = 4 * MAX_BODY_CHARACTERS
_NOT_LISTED = ("/mock/", "/health")


class JournalingApp:
    """Wraps the whole application, its error handling included. Exceptions pass through, as uvicorn must see them."""

    def __init__(self, app: AsgiApp, journal: Journal) -> None:
        self._app = app
        self._journal = journal

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        listed = not scope["path"].startswith(_NOT_LISTED)
        exchange = _Exchange(receive, send)
        entry = None
        if listed:
            query = scope["query_string"].decode(errors="replace")
            entry = self._journal.begin_call(scope["method"], scope["path"], query)
        try:
            await self._app(scope, exchange.receive, exchange.send)
        finally:
            if entry is not None:
                self._journal.end_call(
                    entry, bytes(exchange.request), exchange.request_bytes, exchange.status, bytes(exchange.response)
                )
                logger.info("%s %s -> %d (%.3f s)", scope["method"], scope["path"], exchange.status, entry["seconds"])


class _Exchange:
    """Watches one request and its answer; keeps the beginning of both bodies."""

    def __init__(self, receive: Receive, send: Send) -> None:
        self._receive = receive
        self._send = send
        self.request = bytearray()
        self.request_bytes = 0
        self.response = bytearray()
        self.status = 0

    async def receive(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.request":
            body = message.get("body", b"")
            self.request_bytes += len(body)
            self.request += body[: _KEPT_BYTES - len(self.request)]
        return message

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = [*message.get("headers", ()), (IDENTITY_HEADER, __version__.encode())]
            message = {**message, "headers": headers}
        elif message["type"] == "http.response.body":
            body = message.get("body", b"")
            self.response += body[: _KEPT_BYTES - len(self.response)]
        await self._send(message)
