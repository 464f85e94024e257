"""The routes that a trainer needs around an update: pause, resume, flush, world size.

Follows vLLM 0.21.0, `vllm.entrypoints.serve.rlhf.api_router` and `vllm.entrypoints.serve.cache.api_router`.
"""

from __future__ import annotations

import asyncio
from typing import Annotated, Literal

from fastapi import APIRouter, Query
from fastapi.responses import JSONResponse, Response

from mock_vllm.build import MockEngine
from mock_vllm.errors import EngineCallError, EngineDeadError

PauseMode = Literal["abort", "wait", "keep"]


def control_routes(engine: MockEngine) -> APIRouter:
    """Return the router of the routes around an update. Failures of the engine have a string under `error` here."""
    router = APIRouter()

    async def pause(mode: PauseMode) -> JSONResponse:
        try:
            await asyncio.wrap_future(engine.core.pause())
            if mode == "abort":
                engine.generation.abort_all()
        except (EngineCallError, EngineDeadError) as error:
            return _failed("pause generation", error)
        return JSONResponse({"status": "paused"})

    if engine.profile.waits_by_parameter:

        @router.post("/pause")
        async def pause_generation(
            mode: Annotated[PauseMode, Query()] = "abort",
            wait_for_inflight_requests: Annotated[bool, Query()] = False,  # noqa: ARG001
            clear_cache: Annotated[bool, Query()] = True,  # noqa: ARG001
        ) -> JSONResponse:
            return await pause(mode)

    else:

        @router.post("/pause")
        async def pause_generation_by_mode(
            mode: Annotated[PauseMode, Query()] = "abort",
            clear_cache: Annotated[bool, Query()] = True,  # noqa: ARG001
        ) -> JSONResponse:
            return await pause(mode)

    @router.post("/resume")
    async def resume_generation() -> JSONResponse:
        try:
            await asyncio.wrap_future(engine.core.resume())
        except (EngineCallError, EngineDeadError) as error:
            return _failed("resume generation", error)
        return JSONResponse({"status": "resumed"})

    @router.get("/is_paused")
    async def is_paused() -> JSONResponse:
        try:
            paused = await asyncio.wrap_future(engine.core.is_paused())
        except (EngineCallError, EngineDeadError) as error:
            return _failed("fetch pause status", error)
        return JSONResponse({"is_paused": paused})

    @router.post("/reset_prefix_cache")
    async def reset_prefix_cache(
        reset_running_requests: Annotated[bool, Query()] = False,  # noqa: ARG001
        reset_external: Annotated[bool, Query()] = False,  # noqa: ARG001
    ) -> Response:
        success = await asyncio.wrap_future(engine.core.reset_prefix_cache())
        if engine.profile.flush_answers_json:
            return JSONResponse({"success": bool(success)})
        return Response(status_code=200)

    @router.get("/get_world_size")
    async def get_world_size(include_dp: Annotated[bool, Query()] = True) -> JSONResponse:
        settings = engine.settings
        return JSONResponse({"world_size": settings.world_size if include_dp else settings.world_size_without_dp})

    return router


def _failed(what: str, error: Exception) -> JSONResponse:
    return JSONResponse({"error": f"Failed to {what}: {error}"}, status_code=500)
