"""The plugin's entry point."""

from __future__ import annotations

from . import engine
from .log import logger


def register() -> None:
    """Called by vLLM (`vllm.plugins.load_general_plugins`) in every process; a trainer may call it too.

    Does nothing but warn where the platform is not a CPU: there NCCL itself is wanted.
    """
    from vllm.platforms import current_platform

    if not current_platform.is_cpu():
        logger.warning("plane: the platform is %s, not a CPU: NCCL is left in place", current_platform.device_name)
        return
    engine.install()
    logger.info("plane: NCCL is replaced by the TCP plane")
