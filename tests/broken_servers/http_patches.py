"""Servers that read their requests in another way."""

from __future__ import annotations

import json
from typing import Any

import pytest
from fastapi import HTTPException, Request

from mock_vllm.engine import transfer
from mock_vllm.engine.infos import InfoParser
from mock_vllm.errors import WorkerError
from mock_vllm.http import weight_routes

Patching = pytest.MonkeyPatch


def start_reads_no_body(patching: Patching) -> None:
    """Start accepts anything (0.25 does)."""
    original = weight_routes._json_object

    async def lenient(request: Request) -> dict[str, Any]:
        return {} if request.url.path == "/start_weight_update" else await original(request)

    patching.setattr(weight_routes, "_json_object", lenient)


def bodies_need_a_content_type(patching: Patching) -> None:
    """A body that is not declared as JSON counts as missing (0.32 does)."""
    original = weight_routes._json_object

    async def strict(request: Request) -> dict[str, Any]:
        if not request.headers.get("content-type", "").startswith("application/json"):
            raise HTTPException(400, "Invalid JSON format")
        return await original(request)

    patching.setattr(weight_routes, "_json_object", strict)


def bodies_are_any_json(patching: Patching) -> None:
    """A body that is no object is refused with 400 (0.32 does)."""

    async def typed(request: Request) -> dict[str, Any]:
        try:
            body = json.loads(await request.body())
        except (ValueError, RecursionError):
            raise HTTPException(400, "Invalid JSON format") from None
        if not isinstance(body, dict):
            raise HTTPException(400, "Field required")
        return body

    patching.setattr(weight_routes, "_json_object", typed)


def unknown_keys_are_ignored(patching: Patching) -> None:
    """`init_info` and `update_info` may hold keys that the release does not know."""
    parse = InfoParser.parse

    def lenient(self: InfoParser, given: Any) -> Any:
        if isinstance(given, dict):
            known = self._info_class.__dataclass_fields__
            given = {key: value for key, value in given.items() if key in known}
        return parse(self, given)

    patching.setattr(InfoParser, "parse", lenient)


def lengths_are_not_compared(patching: Patching) -> None:
    """The three lists of an update may differ in length."""
    init = transfer.TransferEngine.__init__

    def unchecked(self: Any, *args: Any, **kwargs: Any) -> None:
        init(self, *args, **kwargs)
        self._update_infos._check = None

    patching.setattr(transfer.TransferEngine, "__init__", unchecked)


def empty_updates_are_refused(patching: Patching) -> None:
    """An update of nothing is an error."""
    parse = transfer.TransferEngine.parse_update

    def strict(self: transfer.TransferEngine, update_info: Any) -> Any:
        info = parse(self, update_info)
        if not info.names:
            raise WorkerError("nothing to update")
        return info

    patching.setattr(transfer.TransferEngine, "parse_update", strict)
