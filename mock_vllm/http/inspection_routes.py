"""The mock's own routes (docs/mock-routes.md). They answer while the engine is blocked."""

from __future__ import annotations

import asyncio
from typing import Any

from fastapi import APIRouter, HTTPException
from fastapi.responses import Response

from mock_vllm.build import MockEngine
from mock_vllm.engine.worker import Worker
from mock_vllm.http.inspection_schema import (
    EngineState,
    HeldTensor,
    JournalAnswer,
    RankWeights,
    ResetAnswer,
    SessionState,
    StateAnswer,
    WeightsAnswer,
)

_RESET_SECONDS = 10.0


def inspection_routes(engine: MockEngine) -> APIRouter:
    """Return the router of `/mock`."""
    router = APIRouter(prefix="/mock")

    @router.get("/weights")
    def weights(rank: int | None = None) -> WeightsAnswer:
        workers = engine.core.executor.workers if rank is None else [_worker(engine, rank)]
        return WeightsAnswer(ranks=[RankWeights(rank=worker.rank, weights=_held(worker)) for worker in workers])

    @router.get("/weights/bytes")
    def weight_bytes(name: str, rank: int = 0) -> Response:
        data = _worker(engine, rank).store.read_bytes(name)
        if data is None:
            raise HTTPException(404, f"no bytes of {name!r} on rank {rank}: unknown, or not kept (use --keep bytes)")
        return Response(data, media_type="application/octet-stream")

    @router.get("/state")
    def state() -> StateAnswer:
        settings, first = engine.settings, engine.core.executor.workers[0]
        session = first.session
        return StateAnswer(
            vllm_version=engine.profile.version,
            model=settings.model,
            model_checked=engine.directory is not None,
            receiver=settings.receiver,
            world_size=settings.world_size,
            paused=engine.core.paused,
            session=SessionState(
                active=session.active,
                checkpoint_format=session.checkpoint_format,
                updates=session.updates,
                failed=any(worker.session.failed for worker in engine.core.executor.workers),
            ),
            group=first.group,
            engine=EngineState(busy=engine.core.busy, queued=engine.core.queued),
        )

    @router.get("/journal")
    def journal(since: int = 0) -> JournalAnswer:
        return JournalAnswer.model_validate(engine.journal.read(since))

    @router.post("/reset")
    async def reset() -> ResetAnswer:
        await asyncio.wait_for(asyncio.wrap_future(engine.core.reset()), _RESET_SECONDS)
        engine.journal.clear()
        return ResetAnswer()

    return router


def _worker(engine: MockEngine, rank: int) -> Worker:
    workers = engine.core.executor.workers
    if not 0 <= rank < len(workers):
        raise HTTPException(404, f"no rank {rank}: there are ranks 0 to {len(workers) - 1}")
    return workers[rank]


def _held(worker: Worker) -> dict[str, HeldTensor]:
    def shown(held: Any) -> HeldTensor:
        return HeldTensor(
            dtype=held.dtype,
            shape=list(held.shape),
            nbytes=held.nbytes,
            sha256=held.sha256,
            received_sha256=held.received_sha256,
            origin=held.origin,
            update=held.update,
            loaded=held.loaded,
            live=held.live,
        )

    return {name: shown(held) for name, held in worker.store.snapshot().items()}
