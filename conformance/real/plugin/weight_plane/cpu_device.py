"""The device `cuda`, which vLLM's transfer code names outright, becomes `cpu`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.overrides import TorchFunctionMode


class CudaMeansCpu(TorchFunctionMode):
    """While entered (per thread), `device="cuda…"` given by keyword to a torch function means the CPU."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Called by torch for every torch function."""
        del types
        kwargs = dict(kwargs or {})
        device = kwargs.get("device")
        if isinstance(device, (str, torch.device)) and torch.device(device).type == "cuda":
            # A string stays a string: torch prints the argument's type in its errors, and vLLM passes those on.
            kwargs["device"] = "cpu" if isinstance(device, str) else torch.device("cpu")
        return func(*args, **kwargs)
