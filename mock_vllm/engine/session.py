"""One worker's weight update session: a single flag in vLLM, with what the mock wants to show besides."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Session:
    """State of the session.

    Attributes:
        active: between a successful start and a successful finish (up to 0.22.1 a failed update leaves it set).
        checkpoint_format: as `start_weight_update` asked for; true again after a finish.
        updates: calls of `update_weights` that ended well in this session.
        failed: an update of this session failed.
    """

    active: bool = False
    checkpoint_format: bool = True
    updates: int = 0
    failed: bool = False

    def open(self, checkpoint_format: bool) -> None:
        """A start was accepted."""
        self.active, self.checkpoint_format = True, checkpoint_format
        self.updates, self.failed = 0, False

    def close(self) -> None:
        """A finish was accepted."""
        self.active, self.checkpoint_format = False, True
