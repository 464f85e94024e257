"""The routes that every vLLM server has, development mode or not."""

from __future__ import annotations

import secrets
import time
from typing import Any

from fastapi import APIRouter
from fastapi.responses import JSONResponse, Response

from mock_vllm.build import MockEngine


def basic_routes(engine: MockEngine) -> APIRouter:
    """Return the router of `/health`, `/version` and `/v1/models`. None of them asks the engine."""
    router = APIRouter()
    settings = engine.settings

    @router.get("/health", response_class=Response)
    async def health() -> Response:
        return Response(status_code=503 if engine.core.dead else 200)

    @router.get("/version")
    async def version() -> JSONResponse:
        return JSONResponse({"version": engine.profile.version})

    @router.get("/v1/models")
    async def models() -> JSONResponse:
        card = _model_card(settings.served_model_name or settings.model, settings.model, engine.max_model_len)
        return JSONResponse({"object": "list", "data": [card]})

    return router


def _model_card(model_id: str, root: str, max_model_len: int) -> dict[str, Any]:
    """Return one entry of the list (vLLM 0.21.0, `vllm.entrypoints.openai.engine.protocol.ModelCard`)."""
    now = int(time.time())
    permission = {
        "id": f"modelperm-{secrets.token_hex(8)}",
        "object": "model_permission",
        "created": now,
        "allow_create_engine": False,
        "allow_sampling": True,
        "allow_logprobs": True,
        "allow_search_indices": False,
        "allow_view": True,
        "allow_fine_tuning": False,
        "organization": "*",
        "group": None,
        "is_blocking": False,
    }
    return {
        "id": model_id,
        "object": "model",
        "created": now,
        "owned_by": "vllm",
        "root": root,
        "parent": None,
        "max_model_len": max_model_len,
        "permission": [permission],
    }
