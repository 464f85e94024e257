"""Running vLLM's CUDA-minded code where there is no CUDA."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from . import accelerator, streams
from .cpu_device import CudaMeansCpu


def on_cpu(method: Callable[..., Any]) -> Callable[..., Any]:
    """`method`, run with the no-op streams, without an accelerator, and with `cuda` meaning the CPU."""

    @functools.wraps(method)
    def run(*args: Any, **kwargs: Any) -> Any:
        streams.install()
        accelerator.install()
        with CudaMeansCpu():
            return method(*args, **kwargs)

    return run
