"""Sleep and wake-up, as far as a CPU can tell.

Follows vLLM 0.21.0, `vllm.entrypoints.serve.sleep.api_router`: query values are raw texts, answers are empty. What
sleeping does to the memory of a GPU is not imitated.
"""

from __future__ import annotations

import asyncio
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse, Response

from mock_vllm.build import MockEngine
from mock_vllm.errors import BadValueError


def sleep_routes(engine: MockEngine) -> APIRouter:
    """Return the router of `/sleep`, `/wake_up` and `/is_sleeping`."""
    router = APIRouter()
    if engine.profile.sleep_answers_json:
        _add_json_routes(router, engine)
    else:
        _add_empty_routes(router, engine)

    @router.get("/is_sleeping")
    async def is_sleeping() -> JSONResponse:
        return JSONResponse({"is_sleeping": await asyncio.wrap_future(engine.core.is_sleeping())})

    return router


def _add_empty_routes(router: APIRouter, engine: MockEngine) -> None:
    """Up to 0.31: the query is not validated, the answers are empty."""

    @router.post("/sleep")
    async def sleep(request: Request) -> Response:
        level = _number(request.query_params.get("level", "1"))
        await asyncio.wrap_future(engine.core.sleep(level, request.query_params.get("mode", "abort")))
        return Response(status_code=200)

    @router.post("/wake_up")
    async def wake_up(request: Request) -> Response:
        await asyncio.wrap_future(engine.core.wake_up(request.query_params.getlist("tags") or None))
        return Response(status_code=200)


def _add_json_routes(router: APIRouter, engine: MockEngine) -> None:
    """From 0.32: the query is validated, the answers are JSON."""

    @router.post("/sleep")
    async def sleep(
        level: Annotated[int, Query(ge=0, le=2)] = 1,
        mode: Annotated[Literal["abort", "wait", "keep"], Query()] = "abort",
    ) -> JSONResponse:
        await asyncio.wrap_future(engine.core.sleep(level, mode))
        return JSONResponse({"status": "sleeping", "level": level})

    @router.post("/wake_up")
    async def wake_up(request: Request) -> JSONResponse:
        tags = request.query_params.getlist("tags") or None
        await asyncio.wrap_future(engine.core.wake_up(tags))
        return JSONResponse({"status": "sleeping" if engine.core.sleeping else "awake", "tags": tags})

    @router.post("/release_kv_cache_memory")
    async def release_kv_cache_memory() -> JSONResponse:
        await asyncio.wrap_future(engine.core.release_kv_cache())
        return JSONResponse({"status": "kv_cache_released"})


def _number(text: str) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise BadValueError(str(error)) from None
