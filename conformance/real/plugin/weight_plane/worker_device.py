"""The CPU worker of vLLM 0.21.0 to 0.22.1 never sets `device`, and `start_weight_update` then fails on None."""

from __future__ import annotations

import functools
from typing import Any

import torch


def install() -> None:
    """Make `CPUWorker.init_device` (`vllm.v1.worker.cpu_worker`) set `device` where it did not. May be repeated."""
    from vllm.v1.worker.cpu_worker import CPUWorker

    original = CPUWorker.init_device
    if getattr(original, "sets_device", False):
        return

    @functools.wraps(original)
    def init_device(self: Any) -> None:
        original(self)
        if self.device is None:
            self.device = torch.device("cpu")

    init_device.sets_device = True  # type: ignore[attr-defined]
    CPUWorker.init_device = init_device
