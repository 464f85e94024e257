"""How a checkpoint's tensors map to vLLM's own parameters and layers, for models built like Llama and Qwen.

vLLM fuses q, k and v into `qkv_proj`, gate and up into `gate_up_proj`, and loads a layer as a whole once all its
elements have arrived (vLLM 0.21.0, `vllm.model_executor.models.qwen2.Qwen2Model.load_weights` and
`vllm.model_executor.model_loader.reload.layerwise`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

FUSED = {
    "q_proj": "qkv_proj",
    "k_proj": "qkv_proj",
    "v_proj": "qkv_proj",
    "gate_proj": "gate_up_proj",
    "up_proj": "gate_up_proj",
}
MODEL_PREFIX = "model."


def runtime_name(name: str) -> str:
    """Return the name of the parameter that a checkpoint tensor is loaded into.

    Like the loader, it replaces text: the first of the fused parts found anywhere in a name below `model.`.
    """
    if name.startswith(MODEL_PREFIX):
        for part, fused in FUSED.items():
            if part in name:
                return name.replace(part, fused)
    return name


def is_fused_part(name: str) -> bool:
    """Tell whether the loader treats the name as a part of a fused parameter."""
    return runtime_name(name) != name


@dataclass
class Layer:
    """One module with parameters of its own, and how much of it has arrived in this session.

    Attributes:
        total: elements of all its tensors.
        arrived: elements that came in this session; the loader counts and does not look which.
        complete: all elements came, so the layer was put in place and takes no more in this session.
        loaded: names that were buffered in this session and fit.
        prepared: taken apart for a session and not put in place since. A session that finds it so goes on where the
            last one broke off: nothing it had buffered or counted is forgotten.
        misfit: what the loader said to a tensor of this session that does not fit. It stays in the buffer, which is
            replayed when the layer is put in place, and fails there once more.
    """

    names: list[str] = field(default_factory=list)
    total: int = 0
    arrived: int = 0
    complete: bool = False
    loaded: set[str] = field(default_factory=set)
    misfit: str | None = None
    prepared: bool = False


class Layout:
    """The layers of a checkpoint, by the checkpoint name of each tensor."""

    def __init__(self, shapes: Mapping[str, tuple[int, ...]]) -> None:
        self.layers: dict[str, Layer] = {}
        self._layer_of: dict[str, Layer] = {}
        for name, shape in shapes.items():
            module = runtime_name(name).rpartition(".")[0]
            layer = self.layers.setdefault(module, Layer())
            layer.names.append(name)
            layer.total += math.prod(shape)
            self._layer_of[name] = layer

    def layer_of(self, name: str) -> Layer:
        """Return the layer that holds this checkpoint tensor."""
        return self._layer_of[name]

    def begin_session(self) -> None:
        """Take every layer apart that is in place."""
        for layer in self.layers.values():
            if not layer.prepared:
                layer.arrived = 0
                layer.complete = False
                layer.loaded = set()
                layer.misfit = None
                layer.prepared = True

    def end_session(self) -> None:
        """Every layer is in place again, whatever it holds."""
        for layer in self.layers.values():
            layer.prepared = False

    @property
    def on_meta(self) -> bool:
        """Some layer is taken apart."""
        return any(layer.prepared for layer in self.layers.values())
