"""The answers of the mock's own routes; clients and the suite read them, so fields are only ever added."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field


class _Answer(BaseModel):
    """Answers carry their schema's name under `schema`, which pydantic reserves as an attribute."""

    model_config = ConfigDict(populate_by_name=True)


class HeldTensor(BaseModel):
    """One tensor of one rank."""

    dtype: str
    shape: list[int]
    nbytes: int
    sha256: str | None
    received_sha256: str | None
    origin: Literal["checkpoint", "transfer", "uninitialised", "zeroed"]
    update: int | None
    loaded: bool
    live: bool


class RankWeights(BaseModel):
    """What one rank holds, by checkpoint name."""

    rank: int
    weights: dict[str, HeldTensor]


class WeightsAnswer(_Answer):
    """`GET /mock/weights`."""

    schema_: str = Field(default="mock-vllm/weights/1", alias="schema")
    ranks: list[RankWeights]


class SessionState(BaseModel):
    """The session of the first rank."""

    active: bool
    checkpoint_format: bool
    updates: int
    failed: bool


class EngineState(BaseModel):
    """The engine's queue."""

    busy: str | None
    queued: int


class StateAnswer(_Answer):
    """`GET /mock/state`."""

    schema_: str = Field(default="mock-vllm/state/1", alias="schema")
    vllm_version: str
    model: str
    model_checked: bool
    receiver: str
    world_size: int
    paused: bool
    session: SessionState
    group: dict[str, Any] | None
    engine: EngineState


class JournalAnswer(_Answer):
    """`GET /mock/journal`."""

    schema_: str = Field(default="mock-vllm/journal/1", alias="schema")
    dropped: int
    entries: list[dict[str, Any]]


class ResetAnswer(BaseModel):
    """`POST /mock/reset`."""

    reset: bool = True
