"""Puts the stand-ins around vLLM's NCCL engine, whose own code runs. Follows vLLM 0.21.0 to 0.32.0,
`vllm.distributed.weight_transfer.nccl_engine.NCCLWeightTransferEngine`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from . import accelerator, loader_hook, process_group, trainer_side, worker_device
from .on_cpu import on_cpu


def install() -> None:
    """Wrap the engine class. Once per process."""
    from vllm.distributed.weight_transfer import nccl_engine

    engine_class: Any = nccl_engine.NCCLWeightTransferEngine
    if getattr(engine_class, "uses_weight_plane", False):
        return
    accelerator.install()
    engine_class.uses_weight_plane = True
    process_group.install(engine_class)
    engine_class.__init__ = _construct(engine_class.__init__)
    engine_class.init_transfer_engine = _replace_group(on_cpu(engine_class.init_transfer_engine))
    engine_class.receive_weights = loader_hook.hook(on_cpu(engine_class.receive_weights))
    engine_class.shutdown = _shutdown(engine_class.shutdown)
    trainer_side.install(nccl_engine)


def _construct(original: Callable[..., None]) -> Callable[..., None]:
    """0.21.0 to 0.22.1: the engine is made in the worker's constructor, the first moment at which this is known to be a
    worker's process, and before the worker's device is set. Later it is made when the model is loaded: no harm is done.
    """

    @functools.wraps(original)
    def construct(self: Any, *args: Any, **kwargs: Any) -> None:
        worker_device.install()
        original(self, *args, **kwargs)

    return construct


def _replace_group(original: Callable[..., None]) -> Callable[..., None]:
    """An old group is left once the new one exists, and kept when there is none."""

    @functools.wraps(original)
    def init_transfer_engine(self: Any, init_info: Any) -> None:
        old = self.model_update_group
        original(self, init_info)
        if old is not None:
            old.close()

    return init_transfer_engine


def _shutdown(original: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(original)
    def shutdown(self: Any) -> None:
        group = self.model_update_group
        original(self)
        if group is not None:
            group.close()

    return shutdown
