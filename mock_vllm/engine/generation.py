"""Completions: enough to show which weights serve, and what inference does to an engine that waits for some.

Tokens are a function of the weights and the prompt, so that other weights give other tokens and the same ones the same.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from dataclasses import dataclass, field

from mock_vllm.engine.core import EngineCore

_POLL_SECONDS = 0.005
DEFAULT_VOCABULARY = 32_000


@dataclass
class _Request:
    """A completion that was accepted and is not answered yet."""

    aborted: bool = False
    id: str = field(default_factory=lambda: f"cmpl-{secrets.token_hex(8)}")


class Generation:
    """The requests under way.

    Args:
        core: the engine; it queues new requests while it is paused, and dies of a model without weights.
        vocabulary: number of tokens.
    """

    def __init__(self, core: EngineCore, vocabulary: int) -> None:
        self._core = core
        self._vocabulary = vocabulary
        self._requests: dict[str, _Request] = {}

    async def complete(self, prompt: list[int], max_tokens: int) -> tuple[str, list[int], str]:
        """Return the request's id, its tokens, and why it ended: `length` or `abort`.

        Raises:
            EngineDeadError: the model had no weights, which kills the engine, or it was dead before.
        """
        request = _Request()
        self._requests[request.id] = request
        try:
            while self._core.paused and not request.aborted and not self._core.dead:
                await asyncio.sleep(_POLL_SECONDS)
            if request.aborted:
                return request.id, [], "abort"
            self._core.compute()
            return request.id, self._tokens(prompt, max_tokens), "length"
        finally:
            del self._requests[request.id]

    def abort_all(self) -> int:
        """End every request that waits; returns how many."""
        for request in self._requests.values():
            request.aborted = True
        return len(self._requests)

    def _tokens(self, prompt: list[int], count: int) -> list[int]:
        weights = self._core.executor.workers[0].store.snapshot()
        state = hashlib.sha256(repr(prompt).encode())
        for name in sorted(weights):
            held = weights[name]
            if held.live and held.loaded:
                state.update(f"{name}={held.sha256}".encode())
        tokens = []
        for position in range(count):
            state.update(str(position).encode())
            tokens.append(int.from_bytes(state.digest()[:4], "big") % self._vocabulary)
        return tokens
