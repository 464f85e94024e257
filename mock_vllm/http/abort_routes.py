"""`/abort_requests`, whose body is parsed by hand in every release that has it.

Follows vLLM 0.32.0, `vllm.entrypoints.rl.online.api_router`.
"""

from __future__ import annotations

import json

from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import JSONResponse

from mock_vllm.build import MockEngine


def abort_routes(engine: MockEngine) -> APIRouter:
    """Return the router of `/abort_requests`. It counts the ids that were given, known or not."""
    router = APIRouter()

    @router.post("/abort_requests")
    async def abort_requests(request: Request) -> JSONResponse:
        try:
            body = await request.json()
        except json.JSONDecodeError as error:
            raise HTTPException(400, "Invalid JSON format") from error
        if not isinstance(body, dict):
            raise HTTPException(400, "Request body must be a JSON object")
        try:
            ids = list(body.get("request_ids") or ())
            aborted = len(ids) if ids else engine.generation.abort_all()
        except TypeError as error:
            return JSONResponse({"error": f"Failed to abort requests: {error}"}, status_code=500)
        return JSONResponse({"status": "aborted", "aborted": aborted})

    return router
