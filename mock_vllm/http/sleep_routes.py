"""Sleep and wake-up, as far as a CPU can tell.

Follows vLLM 0.21.0, `vllm.entrypoints.serve.sleep.api_router`: query values are raw texts, answers are empty. What
sleeping does to the memory of a GPU is not imitated.
"""

from __future__ import annotations

import asyncio

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

from mock_vllm.build import MockEngine
from mock_vllm.errors import BadValueError


def sleep_routes(engine: MockEngine) -> APIRouter:
    """Return the router of `/sleep`, `/wake_up` and `/is_sleeping`."""
    router = APIRouter()

    @router.post("/sleep")
    async def sleep(request: Request) -> Response:
        level = _number(request.query_params.get("level", "1"))
        await asyncio.wrap_future(engine.core.sleep(level, request.query_params.get("mode", "abort")))
        return Response(status_code=200)

    @router.post("/wake_up")
    async def wake_up(request: Request) -> Response:
        await asyncio.wrap_future(engine.core.wake_up(request.query_params.getlist("tags") or None))
        return Response(status_code=200)

    @router.get("/is_sleeping")
    async def is_sleeping() -> JSONResponse:
        return JSONResponse({"is_sleeping": await asyncio.wrap_future(engine.core.is_sleeping())})

    return router


def _number(text: str) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise BadValueError(str(error)) from None
