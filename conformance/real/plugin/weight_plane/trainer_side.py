"""vLLM's own trainer code on a CPU, by release: imported in a trainer's process, it needs no more than the plugin."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from .on_cpu import on_cpu


def install(module: ModuleType) -> None:
    """Follows `vllm.distributed.weight_transfer.nccl_engine` of 0.21.0 to 0.32.0, which `module` is."""
    if hasattr(module, "NCCLTrainerWeightTransferEngine"):
        trainer_engine(module.NCCLTrainerWeightTransferEngine)
    else:
        static_methods(module.NCCLWeightTransferEngine)


def static_methods(engine_class: Any) -> None:
    """0.21.0 to 0.27.1: two static methods of the worker's engine."""
    engine_class.trainer_init = staticmethod(on_cpu(engine_class.trainer_init))
    engine_class.trainer_send_weights = staticmethod(on_cpu(engine_class.trainer_send_weights))


def trainer_engine(trainer_class: Any) -> None:
    """0.28.0 on: a class of its own, which also makes the HTTP calls. Left without a communicator by its `shutdown`."""
    trainer_class.trainer_init = classmethod(on_cpu(trainer_class.trainer_init.__func__))
    trainer_class.send_weights = on_cpu(trainer_class.send_weights)
    original = trainer_class.shutdown

    def shutdown(self: Any) -> None:
        group = self.model_update_group
        original(self)
        if group is not None:
            group.close()

    trainer_class.shutdown = shutdown
