"""What one rank holds, by checkpoint name: the answer to `GET /mock/weights`."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from mock_vllm.engine.digests import Received
from mock_vllm.model.safetensors_header import StoredTensor


@dataclass(frozen=True)
class Held:
    """One tensor; the fields are those of docs/mock-routes.md."""

    dtype: str
    shape: tuple[int, ...]
    nbytes: int
    sha256: str | None
    origin: str
    update: int | None
    loaded: bool
    live: bool
    data: bytes | None = None
    received_sha256: str | None = None


class WeightStore:
    """The weights of one rank. Written by the worker's thread, read by anybody."""

    def __init__(self, checkpoint: Mapping[str, StoredTensor]) -> None:
        self._checkpoint = checkpoint
        self._held: dict[str, Held] = {}
        self._arrived: dict[str, str | None] = {}
        self._lock = threading.Lock()

    def reset(self) -> None:
        """Put the served directory's weights back."""
        with self._lock:
            self._held.clear()
            self._arrived.clear()

    def arrive(self, received: Received) -> None:
        """Note what came over the wire under a name, whatever the loader does with it."""
        with self._lock:
            self._arrived[received.announced.name] = received.sha256

    def put(self, received: Received, update: int, *, loaded: bool, live: bool) -> None:
        """Take a tensor that the loader took, or ignored by name (`loaded` false)."""
        announced = received.announced
        held = Held(
            announced.dtype.name,
            announced.shape,
            announced.nbytes,
            received.sha256,
            "transfer",
            update,
            loaded,
            live,
            received.data,
        )
        with self._lock:
            self._held[announced.name] = held

    def put_uninitialised(self, name: str) -> None:
        """Mark a tensor that a partly loaded layer was put in place without."""
        stored = self._checkpoint[name]
        held = Held(stored.dtype.name, stored.shape, stored.nbytes, None, "uninitialised", None, False, True)
        with self._lock:
            self._held[name] = held

    def zero(self) -> None:
        """Mark every tensor as filled with zeros."""
        for name, held in self.snapshot().items():
            if held.loaded:
                digest = hashlib.sha256(bytes(held.nbytes)).hexdigest()
                with self._lock:
                    self._held[name] = replace(held, sha256=digest, origin="zeroed", update=None, data=None)

    def publish(self, names: Iterable[str] | None = None) -> None:
        """Tensors that the loader took go live: the named ones, or all."""
        with self._lock:
            for name in list(self._held) if names is None else names:
                held = self._held[name]
                self._held[name] = replace(held, live=held.live or held.loaded)

    def snapshot(self) -> dict[str, Held]:
        """Return everything by name, the served directory's tensors first; digests of those are computed now."""
        with self._lock:
            held, arrived = dict(self._held), dict(self._arrived)
        for name, stored in self._checkpoint.items():
            if name not in held:
                held[name] = self._from_checkpoint(stored)
        return {name: replace(entry, received_sha256=arrived.get(name)) for name, entry in held.items()}

    def read_bytes(self, name: str) -> bytes | None:
        """Return the raw bytes of a tensor, or None when they were not kept or the name is unknown."""
        with self._lock:
            held = self._held.get(name)
        if held is not None:
            return held.data
        stored = self._checkpoint.get(name)
        return None if stored is None else stored.read()

    def _from_checkpoint(self, stored: StoredTensor) -> Held:
        digest = _cached_digest(stored)
        return Held(stored.dtype.name, stored.shape, stored.nbytes, digest, "checkpoint", None, loaded=True, live=True)


_digests: dict[tuple[str, str, int], str] = {}


def _cached_digest(stored: StoredTensor) -> str:
    """Digest a tensor of the served directory once a process: every rank serves the same file."""
    key = (str(stored.file), stored.name, stored.file.stat().st_mtime_ns)
    if key not in _digests:
        _digests[key] = stored.sha256()
    return _digests[key]
