"""What a push did."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class PushReport:
    """The outcome of a push that succeeded.

    engine      base URL, without credentials
    version     the engine's vLLM version
    world_size  its workers
    packed      whether packed buffers were sent, as far as the release can pack its tensors
    tensors     how many were sent; `nbytes` their bytes; `buckets` the calls of `/update_weights`
    seconds     how long each phase took, by its name, in order
    verified    true when every digest agreed, None when the server does not show any; `reason` says why
    warnings    a sentence each
    form_reason     why a tensor or all of them did not travel in the usual or the asked form, or None
    weight_version  what the engine calls the weights now, as it said itself; None when it was not told
    """

    engine: str
    version: str
    world_size: int
    packed: bool
    tensors: int
    nbytes: int
    buckets: int
    verified: bool | None
    reason: str | None
    seconds: dict[str, float] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    form_reason: str | None = None
    weight_version: str | None = None

    @property
    def total_seconds(self) -> float:
        """All phases together."""
        return sum(self.seconds.values())

    @property
    def bytes_per_second(self) -> float:
        """Rate of the phase in which the tensors travelled."""
        taken = self.seconds.get("update", 0.0)
        return self.nbytes / taken if taken > 0 else 0.0

    def as_json(self) -> dict[str, Any]:
        """The report as a JSON object; `schema` names its form."""
        return {
            "schema": "vime-sync/push/1",
            "engine": self.engine,
            "version": self.version,
            "world_size": self.world_size,
            "packed": self.packed,
            "form_reason": self.form_reason,
            "weight_version": self.weight_version,
            "tensors": self.tensors,
            "bytes": self.nbytes,
            "buckets": self.buckets,
            "verified": self.verified,
            "reason": self.reason,
            "seconds": {phase: round(seconds, 6) for phase, seconds in self.seconds.items()},
            "warnings": list(self.warnings),
        }
