"""The routes of a weight update with bodies declared to FastAPI, and those that came with later releases.

Follows vLLM 0.32.0, `vllm.entrypoints.rl.online.api_router`. Init and update want a JSON content type; start reads no
body; finish takes an optional label, and one that comes without that content type is lost without a word.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Body, HTTPException
from fastapi.responses import JSONResponse

from mock_vllm.build import MockEngine
from mock_vllm.http.encodable import check_encodable
from mock_vllm.http.null_body import NullIsNoBody

Payload = dict[str, Any] | list[dict[str, Any]]


def typed_weight_routes(engine: MockEngine) -> APIRouter:
    """Return the router of init, start, update, finish and their neighbours."""
    router = APIRouter(route_class=NullIsNoBody)
    core = engine.core

    def call(method: str, *args: Any) -> Awaitable[Any]:
        return asyncio.wrap_future(core.collective_rpc(method, *args))

    @router.post("/init_weight_transfer_engine")
    async def init_weight_transfer_engine(init_info: Annotated[dict[str, Any], Body(embed=True)]) -> JSONResponse:
        check_encodable(init_info)
        await call("init_weight_transfer_engine", init_info)
        return JSONResponse({"message": "Weight transfer initialized"})

    @router.post("/shutdown_weight_transfer_engine")
    async def shutdown_weight_transfer_engine() -> JSONResponse:
        await call("shutdown_weight_transfer_engine")
        return JSONResponse({"message": "Weight transfer shut down"})

    @router.post("/start_weight_update")
    async def start_weight_update() -> JSONResponse:
        await call("start_weight_update", True)
        return JSONResponse({"message": "Weight update started"})

    @router.post("/start_draft_weight_update")
    async def start_draft_weight_update() -> JSONResponse:
        await call("start_draft_weight_update")
        return JSONResponse({"message": "Draft weight update started"})

    @router.post("/update_weights")
    async def update_weights(update_info: Annotated[Payload, Body(embed=True)]) -> JSONResponse:
        check_encodable(update_info)
        await call("update_weights", update_info)
        return JSONResponse({"message": "Weights updated"})

    @router.post("/finish_weight_update")
    async def finish_weight_update(
        weight_version: Annotated[str | None, Body(embed=True)] = None,
    ) -> JSONResponse:
        await asyncio.wrap_future(core.finish_weight_update(weight_version))
        return JSONResponse({"message": "Weight update finished"})

    @router.post("/update_weight_version")
    async def update_weight_version(new_version: Annotated[str, Body(embed=True)]) -> JSONResponse:
        await asyncio.wrap_future(core.set_weight_version(new_version))
        return JSONResponse({"success": True, "new_version": new_version})

    @router.get("/weight_info")
    async def weight_info() -> JSONResponse:
        return JSONResponse({"weight_version": await asyncio.wrap_future(core.get_weight_version())})

    @router.post("/weight_checker")
    async def weight_checker(
        action: Annotated[Literal["checksum", "reset", "compare"], Body(embed=True)],
        baseline: Annotated[dict[str, str] | None, Body(embed=True)] = None,
    ) -> JSONResponse:
        if action == "reset":
            await call("reset_weights")
            return JSONResponse({"status": "reset"})
        if action == "compare" and baseline is None:
            raise HTTPException(400, "action='compare' requires a 'baseline' object")
        found: dict[str, str] = {}
        for of_worker in await asyncio.wrap_future(core.compute_weight_checksums()):
            found.update(of_worker)
        if action == "checksum":
            return JSONResponse({"checksums": found})
        known = baseline or {}
        others = sorted(key for key in found.keys() | known.keys() if found.get(key) != known.get(key))
        return JSONResponse({"match": not others, "mismatches": others})

    return router
