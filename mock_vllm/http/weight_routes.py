"""The four routes of a weight update.

Follows vLLM 0.21.0, `vllm.entrypoints.serve.rlhf.api_router`: bodies are parsed by hand, whatever the content type
says; finish never reads its body.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import JSONResponse

from mock_vllm.build import MockEngine
from mock_vllm.errors import ApiProcessError
from mock_vllm.http.encodable import check_encodable


def weight_routes(engine: MockEngine) -> APIRouter:
    """Return the router of `/init_weight_transfer_engine` to `/finish_weight_update`."""
    router = APIRouter()

    async def call(method: str, *args: Any) -> None:
        await asyncio.wrap_future(engine.core.collective_rpc(method, *args))

    @router.post("/init_weight_transfer_engine")
    async def init_weight_transfer_engine(request: Request) -> JSONResponse:
        init_info = await _required(request, "init_info")
        await call("init_weight_transfer_engine", init_info)
        return JSONResponse({"message": "Weight transfer initialized"})

    @router.post("/start_weight_update")
    async def start_weight_update(request: Request) -> JSONResponse:
        body = await _json_object(request)
        await call("start_weight_update", body.get("is_checkpoint_format", True))
        return JSONResponse({"message": "Weight update started"})

    @router.post("/update_weights")
    async def update_weights(request: Request) -> JSONResponse:
        update_info = await _required(request, "update_info")
        await call("update_weights", update_info)
        return JSONResponse({"message": "Weights updated"})

    @router.post("/finish_weight_update")
    async def finish_weight_update() -> JSONResponse:
        await call("finish_weight_update")
        return JSONResponse({"message": "Weight update finished"})

    return router


async def _json_object(request: Request) -> dict[str, Any]:
    """Return the body, which vLLM expects to be an object but does not check."""
    try:
        body = await request.json()
    except json.JSONDecodeError as error:
        raise HTTPException(400, "Invalid JSON format") from error
    if not isinstance(body, dict):
        raise ApiProcessError(f"'{type(body).__name__}' object has no attribute 'get'")
    return body


async def _required(request: Request, key: str) -> Any:
    value = (await _json_object(request)).get(key)
    if value is None:
        raise HTTPException(400, f"Missing '{key}' in request body")
    check_encodable(value)
    return value
