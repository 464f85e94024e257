"""`torch.accelerator` functions that raise where there is none."""

from __future__ import annotations

from typing import Any

import torch


def install() -> None:
    """`current_device_index` becomes 0, `synchronize` nothing. Repeating it is harmless."""
    accelerator: Any = torch.accelerator
    accelerator.current_device_index = lambda: 0
    accelerator.synchronize = lambda _device=None: None
