"""Names below `model.` that the model lacks, as later releases refuse them.

Follows vLLM 0.32.0, where `vllm.model_executor.models.utils.AutoWeightsLoader` loads the inner model as well: it walks
down the modules and complains where a name leaves them. (Since 0.25; before, such names were ignored.)
"""

from __future__ import annotations

from collections.abc import Collection

from mock_vllm.errors import WorkerError
from mock_vllm.model.layout import MODEL_PREFIX, is_fused_part, runtime_name
from mock_vllm.model.module_classes import module_class


def refuse_inside(name: str, architecture: str, runtime_names: Collection[str]) -> None:
    """Raise for a name below `model.` that leads nowhere; return for one that the loader passes over.

    Args:
        name: checkpoint name, `model` itself included.
        architecture: the model's class.
        runtime_names: vLLM's own parameter names.
    """
    if name.endswith(".bias"):
        return
    inside = {known.removeprefix(MODEL_PREFIX) for known in runtime_names if known.startswith(MODEL_PREFIX)}
    model_class = module_class("model", architecture)
    path = ""
    for item in runtime_name(name).removeprefix("model").removeprefix(".").split("."):
        deeper = f"{path}.{item}" if path else item
        if deeper in inside:
            raise WorkerError(f"Attempted to load nested weight {name!r} into a single parameter {deeper!r}")
        if not any(known.startswith(f"{deeper}.") for known in inside):
            owner = module_class(path, architecture) if path else model_class
            if path and is_fused_part(name):
                _refuse_in_fused(path, owner)
            available = {known for known in inside if not path or known.startswith(f"{path}.")}
            raise WorkerError(
                f"There is no module or parameter named {deeper!r} in {model_class}. "
                f"The available parameters belonging to {path} ({owner}) are: {available}"
            )
        path = deeper


def _refuse_in_fused(path: str, owner: str) -> None:
    """A part of a fused layer is looked up in the layer itself, whose class the complaint names."""
    if path.endswith(("qkv_proj", "gate_up_proj")):
        raise WorkerError(f"'{owner}' object has no attribute 'data'")
