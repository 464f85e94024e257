"""The seam between the worker and what it serves."""

from __future__ import annotations

from typing import Protocol

from mock_vllm.engine.digests import Received


class ModelLoader(Protocol):
    """Takes the tensors of a session. Each method mirrors a moment of the worker's session."""

    def begin(self, checkpoint_format: bool) -> None:
        """A session was opened."""

    def load(self, tensors: list[Received], update: int) -> None:
        """Take the tensors of one broadcast, in order. Raises WorkerError; tensors before the bad one stay loaded."""

    def finish(self) -> None:
        """The session is closed: what arrived goes live."""
