"""A worker extension: pass `--worker-extension-cls weight_plane.extension.ReceivedWeights` to vLLM's server.

    POST /collective_rpc {"method": "received_weights"}          -> {"results": [[{"name": …, "sha256": …}, …], …]}
    POST /collective_rpc {"method": "forget_received_weights"}   -> {"results": ["25", …]}

One result per worker.
"""

from __future__ import annotations

from typing import Any

from .received import RECEIVED


class ReceivedWeights:
    """Mixed into vLLM's worker class (`vllm.v1.worker.worker_base.WorkerWrapperBase.init_worker`)."""

    def received_weights(self) -> list[dict[str, Any]]:
        """Name, dtype, shape, nbytes and sha256 of each tensor handed to the loader since the last forget, in order."""
        return RECEIVED.as_dicts()

    def forget_received_weights(self) -> int:
        """Start a new list. Returns how many entries the old one held."""
        return RECEIVED.forget()
