"""The loader of a model directory: names and shapes are judged as the release's loader judges them.

Follows vLLM 0.21.0: `vllm.model_executor.models.utils.AutoWeightsLoader`, `…models.qwen2.Qwen2Model.load_weights` and
`vllm.model_executor.model_loader.reload.layerwise`.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable

from mock_vllm.engine.digests import Received
from mock_vllm.errors import WorkerError
from mock_vllm.model import load_errors
from mock_vllm.model.directory import ModelDirectory
from mock_vllm.model.layout import Layer, Layout, is_fused_part, runtime_name
from mock_vllm.model.module_classes import missing_parameter
from mock_vllm.model.nested_names import refuse_inside
from mock_vllm.model.shape_checks import check_shape
from mock_vllm.model.weights import WeightStore

_SKIPPED_PARTS = (
    "rotary_pos_emb.inv_freq",
    "rotary_emb.inv_freq",
    "rotary_emb.cos_cached",
    "rotary_emb.sin_cached",
)
"""Tensors of old checkpoints that the loader passes over wherever they appear."""


class CheckedLoader:
    """Loads into one model directory's layout.

    Args:
        directory: the served model.
        store: what the rank holds.
        unknown_inside_is_error: the release refuses unknown names below a known module.
        full_fused_layer: what it says to a part of a fused layer that is complete; None: nothing.
    """

    def __init__(
        self,
        directory: ModelDirectory,
        store: WeightStore,
        unknown_inside_is_error: bool,
        full_fused_layer: str | None = None,
    ) -> None:
        self._directory = directory
        self._store = store
        self._unknown_inside_is_error = unknown_inside_is_error
        self._full_fused_layer = full_fused_layer
        self._shapes = {name: tensor.shape for name, tensor in directory.tensors.items()}
        self._layout = Layout(self._shapes)
        self._roots = {name.partition(".")[0] for name in self._shapes}
        self._runtime_names = {runtime_name(name) for name in self._shapes}
        self._checkpoint_format = True

    @property
    def on_meta(self) -> bool:
        return self._layout.on_meta

    def checksums(self) -> dict[str, str]:
        held = self._store.snapshot()
        parts: dict[str, list[str]] = {}
        for name in self._shapes:
            parts.setdefault(runtime_name(name), []).append(held[name].sha256 or "")
        return {
            name: digests[0] if len(digests) == 1 else hashlib.sha256("".join(digests).encode()).hexdigest()
            for name, digests in parts.items()
        }

    def begin(self, checkpoint_format: bool) -> None:
        self._checkpoint_format = checkpoint_format
        if checkpoint_format:
            self._layout.begin_session()

    def load(self, tensors: list[Received], update: int) -> None:
        for received in tensors:
            load_errors.check_name(received.announced.name)
            self._store.arrive(received)
            if self._checkpoint_format:
                self._load_checkpoint_tensor(received, update)
            else:
                self._copy_kernel_tensor(received, update)

    def finish(self) -> None:
        if self._checkpoint_format:
            for layer in self._layout.layers.values():
                if 0 < layer.arrived < layer.total and not layer.complete:
                    self._place(layer)
            self._layout.end_session()
        self._store.publish()

    def _load_checkpoint_tensor(self, received: Received, update: int) -> None:
        name = received.announced.name
        if self._is_skipped(name):
            self._store.put(received, update, loaded=False, live=False)
            return
        if name not in self._shapes:
            self._refuse_unknown(name)
            self._store.put(received, update, loaded=False, live=False)
            return
        layer = self._layout.layer_of(name)
        if layer.complete:
            if self._full_fused_layer is not None and is_fused_part(name):
                raise WorkerError(self._full_fused_layer)
            return
        try:
            check_shape(name, received.announced.shape, self._shapes[name])
        except WorkerError as error:
            layer.misfit = layer.misfit if layer.misfit is not None else str(error)
            raise
        self._store.put(received, update, loaded=True, live=False)
        layer.loaded.add(name)
        layer.arrived += math.prod(self._shapes[name])
        if layer.arrived >= layer.total:
            self._place(layer)

    def _place(self, layer: Layer) -> None:
        """Put a layer in place with what has come; what has not holds uninitialised memory in vLLM.

        Raises:
            WorkerError: the buffer holds a tensor that does not fit. The layer stays as it is then: a finish fails in
                the same way, unless all its elements had come (then it is left on uninitialised memory).
        """
        if layer.misfit is not None:
            if layer.arrived >= layer.total:
                self._mark_uninitialised(layer.names)
            raise WorkerError(layer.misfit)
        layer.complete, layer.prepared = True, False
        self._store.publish(layer.loaded)
        self._mark_uninitialised(name for name in layer.names if name not in layer.loaded)

    def _mark_uninitialised(self, names: Iterable[str]) -> None:
        for name in names:
            self._store.put_uninitialised(name)

    def _copy_kernel_tensor(self, received: Received, update: int) -> None:
        announced = received.announced
        if announced.name not in self._runtime_names:
            raise WorkerError(missing_parameter(str(announced.name), self._directory.architecture, self._runtime_names))
        if announced.name in self._shapes:
            load_errors.check_kernel_copy(announced.name, announced.shape, self._shapes[announced.name])
        self._store.put(received, update, loaded=True, live=True)

    def _is_skipped(self, name: str) -> bool:
        if self._directory.tied and name.startswith("lm_head."):
            return True
        return any(part in name for part in _SKIPPED_PARTS)

    def _refuse_unknown(self, name: str) -> None:
        """Raise for a name that the loader does not pass over."""
        root = name.partition(".")[0]
        if root in self._roots and root == "model":
            if self._unknown_inside_is_error:
                refuse_inside(name, self._directory.architecture, self._runtime_names)
                return
            if is_fused_part(name) and not name.endswith(".bias"):
                load_errors.refuse_fused(runtime_name(name).removeprefix("model."))
            return
        load_errors.refuse_nested(name, self._shapes)
        raise WorkerError(
            load_errors.no_module_or_parameter(name, self._directory.architecture, self._roots, self._runtime_names)
        )
