"""The plugin's logger. A child of vLLM's, so that its lines appear in the server's log without any set-up."""

from __future__ import annotations

import logging

logger = logging.getLogger("vllm.weight_plane")
