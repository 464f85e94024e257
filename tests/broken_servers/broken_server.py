"""How a server is broken: another profile, another receiver, a replaced function, or rewritten answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import pytest

from mock_vllm import MockApp, MockServer, Settings, build_engine
from mock_vllm.http.journaling import Message, Receive, Scope, Send
from mock_vllm.profiles import Profile
from mock_vllm.receivers.receiver import ReceiverFactory

Headers = list[tuple[bytes, bytes]]


@dataclass(frozen=True)
class Answer:
    """One answer of the server, before it is sent."""

    method: str
    path: str
    status: int
    headers: Headers
    body: bytes

    def with_body(self, body: bytes) -> Answer:
        """Return the answer with another body and a content length that fits."""
        kept = [(name, value) for name, value in self.headers if name != b"content-length"]
        return replace(self, body=body, headers=[*kept, (b"content-length", str(len(body)).encode())])


Rewrite = Callable[[Answer], Answer]
Patch = Callable[[pytest.MonkeyPatch], None]


@dataclass(frozen=True)
class BrokenServer:
    """One way to be wrong.

    Attributes:
        name: names it in `red_cases.json`.
        family: the area of cases it is meant for, as in their ids.
        profile: fields of the release's profile that are other.
        receiver: makes another receiver.
        patch: replaces a function of the mock while the server runs.
        rewrite: changes answers on their way out.
        release: the release whose mock is broken, and whose truth it is held to.
        launched: the suite starts the server itself, for the cases that need one of their own; `patch` alone counts.
        swallow: exceptions no longer reach uvicorn, so that no connection is closed after a 500.
    """

    name: str
    family: str
    profile: Mapping[str, Any] | None = None
    receiver: ReceiverFactory | None = None
    patch: Patch | None = None
    rewrite: Rewrite | None = None
    swallow: bool = False
    release: str = "0.21.0"
    launched: bool = False

    @contextmanager
    def serving(self, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
        """Serve it; yields the URL."""
        if self.patch is not None:
            self.patch(monkeypatch)
        profile: Profile | None = None if self.profile is None else replace(settings.profile, **self.profile)
        app = _BentApp(build_engine(settings, profile, self.receiver), self.rewrite, self.swallow)
        with MockServer(settings, app) as server:
            yield server.url


class _BentApp(MockApp):
    """The mock's application with answers that can be rewritten."""

    def __init__(self, engine: Any, rewrite: Rewrite | None, swallow: bool) -> None:
        super().__init__(engine)
        self._rewrite = rewrite
        self._swallow = swallow

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        held = _HeldAnswer(scope, self._rewrite, send)
        try:
            await super().__call__(scope, receive, send if self._rewrite is None else held.send)
        except Exception:
            if not self._swallow:
                raise


class _HeldAnswer:
    """Holds an answer until it is complete, then sends it rewritten."""

    def __init__(self, scope: Scope, rewrite: Rewrite | None, send: Send) -> None:
        self._scope = scope
        self._rewrite = rewrite
        self._send = send
        self._start: Message = {}
        self._body = b""

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._start = message
            return
        self._body += message.get("body", b"")
        if message.get("more_body"):
            return
        assert self._rewrite is not None
        scope, start = self._scope, self._start
        answer = self._rewrite(
            Answer(scope["method"], scope["path"], start["status"], list(start["headers"]), self._body)
        )
        await self._send({**start, "status": answer.status, "headers": answer.headers})
        await self._send({"type": "http.response.body", "body": answer.body})
