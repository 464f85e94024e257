"""The loader of a bare model name: every tensor is accepted."""

from __future__ import annotations

from mock_vllm.engine.digests import Received
from mock_vllm.model.load_errors import check_name
from mock_vllm.model.weights import WeightStore


class OpenLoader:
    """Accepts any name, shape and dtype; everything goes live when the session is finished."""

    def __init__(self, store: WeightStore) -> None:
        self._store = store
        self._apart = False

    @property
    def on_meta(self) -> bool:
        return self._apart

    def checksums(self) -> dict[str, str]:
        return {name: held.sha256 or "" for name, held in self._store.snapshot().items() if held.loaded}

    def begin(self, checkpoint_format: bool) -> None:
        self._apart = self._apart or checkpoint_format

    def load(self, tensors: list[Received], update: int) -> None:
        for received in tensors:
            check_name(received.announced.name)
            self._store.arrive(received)
            self._store.put(received, update, loaded=True, live=False)

    def finish(self) -> None:
        self._apart = False
        self._store.publish()
