"""Noting what the engine hands to the model's loader, by release."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from .received import LoadWeights, noting


def hook(receive_weights: Callable[..., None]) -> Callable[..., None]:
    """`NCCLWeightTransferEngine.receive_weights`, with its loader noting what it gets."""
    if "load_weights" in inspect.signature(receive_weights).parameters:
        return hook_argument(receive_weights)
    return hook_model(receive_weights)


def hook_argument(receive_weights: Callable[..., None]) -> Callable[..., None]:
    """0.21.0 to 0.24.0: the worker passes its loader in."""

    @functools.wraps(receive_weights)
    def receive(self: Any, update_info: Any, load_weights: LoadWeights) -> None:
        receive_weights(self, update_info, load_weights=noting(load_weights))

    return receive


def hook_model(receive_weights: Callable[..., None]) -> Callable[..., None]:
    """0.25.0 on: the engine calls its model's `load_weights`, for as long as the call lasts a noting one."""

    @functools.wraps(receive_weights)
    def receive(self: Any, update_info: Any) -> None:
        model = self.model
        model.load_weights = noting(model.load_weights)
        try:
            receive_weights(self, update_info)
        finally:
            # The instance's own attribute: the class's method shows again.
            del model.load_weights

    return receive
