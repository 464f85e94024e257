"""Servers that are wrong in how they start, or in how they end."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from fastapi import APIRouter

from mock_vllm import MockServer, app
from mock_vllm.engine.core import EngineCore
from mock_vllm.http import weight_routes
from mock_vllm.http.journaling import JournalingApp, Receive, Scope, Send

Patching = pytest.MonkeyPatch


def _forcing(patching: Patching, **values: bool) -> None:
    init = MockServer.__init__

    def forced(self: MockServer, settings: Any, *more: Any) -> None:
        init(self, replace(settings, **values), *more)

    patching.setattr(MockServer, "__init__", forced)


def dev_mode_is_always_on(patching: Patching) -> None:
    """The routes of the transfer are there without VLLM_SERVER_DEV_MODE."""
    _forcing(patching, dev_mode=True)


def a_transfer_config_is_always_given(patching: Patching) -> None:
    """The workers can transfer weights without a configuration."""
    _forcing(patching, weight_transfer=True)


def information_needs_dev_mode(patching: Patching) -> None:
    """`/health` and `/v1/models` are missing without VLLM_SERVER_DEV_MODE."""
    routes = app.basic_routes

    def some(engine: Any) -> APIRouter:
        router = routes(engine)
        if not engine.settings.dev_mode:
            router.routes = [route for route in router.routes if getattr(route, "path", "") == "/version"]
        return router

    patching.setattr(app, "basic_routes", some)


def missing_keys_are_fine(patching: Patching) -> None:
    """A body without its key is handed to the engine."""

    async def lenient(request: Any, key: str) -> Any:
        return (await weight_routes._json_object(request)).get(key, {})

    patching.setattr(weight_routes, "_required", lenient)


def the_engine_outlives_everything(patching: Patching) -> None:
    """A model without weights computes all the same."""
    patching.setattr(EngineCore, "compute", lambda self: None)


def content_types_are_bare(patching: Patching) -> None:
    """Only `application/json`, to the letter, declares JSON."""
    call = JournalingApp.__call__

    async def strict(self: JournalingApp, scope: Scope, receive: Receive, send: Send) -> None:
        bare = [
            (name, value)
            for name, value in scope.get("headers", ())
            if name != b"content-type" or value == b"application/json"
        ]
        await call(self, {**scope, "headers": bare}, receive, send)

    patching.setattr(JournalingApp, "__call__", strict)
