"""`/v1/completions`, as far as a weight sync needs it: greedy, one prompt, no streaming.

Follows vLLM 0.21.0 and 0.32.0, `vllm.entrypoints.openai.completion`.
"""

from __future__ import annotations

import time
from typing import Any

from fastapi import APIRouter
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict

from mock_vllm.build import MockEngine
from mock_vllm.errors import BadValueError, EngineDeadError
from mock_vllm.http.errors import envelope


class CompletionRequest(BaseModel):
    """The fields that the mock looks at; others are accepted and have no effect."""

    model_config = ConfigDict(extra="allow")

    model: str | None = None
    prompt: str | list[int]
    max_tokens: int = 16
    stream: bool = False
    return_token_ids: bool = False


def completion_routes(engine: MockEngine) -> APIRouter:
    """Return the router of `/v1/completions`."""
    router = APIRouter()
    served = engine.settings.served_model_name or engine.settings.model

    @router.post("/v1/completions")
    async def completions(request: CompletionRequest) -> JSONResponse:
        if request.model not in (None, served):
            return envelope(f"The model `{request.model}` does not exist.", "NotFoundError", 404, "model")
        if request.stream:
            raise BadValueError("the mock does not stream completions")
        prompt = list(request.prompt.encode()) if isinstance(request.prompt, str) else request.prompt
        _check(prompt, engine.vocabulary)
        try:
            request_id, tokens, reason = await engine.generation.complete(prompt, request.max_tokens)
        except EngineDeadError as error:
            return envelope(str(error), "InternalServerError", 500)
        choice = {
            "index": 0,
            "text": "".join(chr(33 + token % 90) for token in tokens),
            "logprobs": None,
            "finish_reason": reason,
            "stop_reason": None,
            "token_ids": tokens if request.return_token_ids else None,
            "prompt_logprobs": None,
            "prompt_token_ids": prompt if request.return_token_ids else None,
            "routed_experts": None,
        }
        return JSONResponse(
            {
                "id": request_id,
                "object": "text_completion",
                "created": int(time.time()),
                "model": served,
                "choices": [choice],
                "service_tier": None,
                "system_fingerprint": engine.profile.fingerprint,
                "usage": _usage(len(prompt), len(tokens), engine.profile.usage_fields),
                "kv_transfer_params": None,
                **dict.fromkeys(engine.profile.completion_fields),
            }
        )

    return router


def _check(prompt: list[int], vocabulary: int) -> None:
    if not prompt:
        raise BadValueError("You must pass at least one prompt")
    for token in prompt:
        if not 0 <= token < vocabulary:
            raise BadValueError(f"Token id {token} is out of vocabulary")


def _usage(prompt: int, completion: int, fields: tuple[str, ...]) -> dict[str, Any]:
    counts = {"prompt_tokens": prompt, "total_tokens": prompt + completion, "completion_tokens": completion}
    return {**counts, **dict.fromkeys(fields)}
