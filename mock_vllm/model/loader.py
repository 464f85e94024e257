"""The seam between the worker and what it serves."""

from __future__ import annotations

from typing import Protocol

from mock_vllm.engine.digests import Received


class ModelLoader(Protocol):
    """Takes the tensors of a session. Each method mirrors a moment of the worker's session."""

    @property
    def on_meta(self) -> bool:
        """Layers were taken apart for a session and not put together again: computing with them kills the engine."""

    def checksums(self) -> dict[str, str]:
        """Return a digest of every parameter, by vLLM's own names."""

    def begin(self, checkpoint_format: bool) -> None:
        """A session was opened."""

    def load(self, tensors: list[Received], update: int) -> None:
        """Take the tensors of one broadcast, in order. Raises WorkerError; tensors before the bad one stay loaded."""

    def finish(self) -> None:
        """The session is closed: what arrived goes live."""
