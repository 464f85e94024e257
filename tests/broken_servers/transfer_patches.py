"""Servers that receive, cut or load tensors in another way."""

from __future__ import annotations

from typing import Any

import pytest

from mock_vllm.engine import packing, transfer
from mock_vllm.engine.dtypes import BY_NAME, DType
from mock_vllm.engine.worker import Worker
from mock_vllm.errors import WorkerError
from mock_vllm.model import checked_loader

Patching = pytest.MonkeyPatch


def buffers_are_full_at_their_size(patching: Patching) -> None:
    """A buffer is cut when the sum reaches its size, not when it exceeds it."""

    def cut(tensors: Any, size: Any, *more: Any) -> Any:
        return packing.cut_buffers(tensors, size - 1 if isinstance(size, int) else size, *more)

    patching.setattr(transfer, "cut_buffers", cut)


def buffers_have_no_size(patching: Patching) -> None:
    """Everything goes into one buffer."""

    def cut(tensors: Any, size: Any, *more: Any) -> Any:
        return packing.cut_buffers(tensors, size if not isinstance(size, int) else 1 << 60, *more)

    patching.setattr(transfer, "cut_buffers", cut)


def any_view_works(patching: Patching) -> None:
    """Packed tensors may begin anywhere and have no dimensions (0.32 allows the second)."""
    patching.setattr(transfer, "check_unpacking", lambda *bucket: None)


def nccl_has_every_dtype(patching: Patching) -> None:
    """Unpacked tensors of any dtype are received."""

    def find(name: Any) -> DType:
        dtype = BY_NAME.get(name)
        if dtype is None:
            raise WorkerError(f"module 'torch' has no attribute '{name}'")
        return DType(dtype.name, dtype.itemsize, in_nccl=True, scalar=dtype.scalar)

    patching.setattr(transfer, "find_dtype", find)


def unknown_dtypes_are_bytes(patching: Patching) -> None:
    """A dtype that torch lacks is taken for uint8."""

    def find(name: Any) -> DType:
        return BY_NAME.get(name, BY_NAME["uint8"]) if isinstance(name, str) else BY_NAME["uint8"]

    patching.setattr(transfer, "find_dtype", find)
    patching.setattr(packing, "find_dtype", find)


def any_shape_fits(patching: Patching) -> None:
    """The loader takes tensors of any shape."""
    patching.setattr(checked_loader, "check_shape", lambda name, given, expected: None)


def names_are_taken_as_they_are(patching: Patching) -> None:
    """The loader ignores every unknown name, inside the model and outside."""
    patching.setattr(checked_loader.CheckedLoader, "_refuse_unknown", lambda self, name: None)


def a_second_init_is_refused(patching: Patching) -> None:
    """A worker that has a group takes no other."""
    init = transfer.TransferEngine.init

    def once(self: transfer.TransferEngine, init_info: Any) -> Any:
        if self._receiver is not None:
            raise WorkerError("weight transfer is initialized already")
        return init(self, init_info)

    patching.setattr(transfer.TransferEngine, "init", once)


def packed_tensors_lose_their_names(patching: Patching) -> None:
    """The tensors of a packed buffer are handed over in the wrong order: each gets its neighbour's bytes."""
    finish = transfer.TensorSplitter.finish

    def swapped(self: Any, has_bytes: bool) -> Any:
        received = finish(self, has_bytes)
        digests = [entry.sha256 for entry in received]
        moved = digests[1:] + digests[:1]
        return [type(entry)(entry.announced, digest, None) for entry, digest in zip(received, moved, strict=True)]

    patching.setattr(transfer.TensorSplitter, "finish", swapped)


def tensors_after_the_first_are_dropped(patching: Patching) -> None:
    """Every broadcast is read, only the first tensor of an update is kept."""
    load = Worker._load

    def first(self: Worker, tensors: Any) -> None:
        if getattr(self, "loading", None) != self._update_calls:
            self.loading = self._update_calls  # type: ignore[attr-defined]
            load(self, tensors[:1])

    patching.setattr(Worker, "_load", first)


def refused_updates_eat_a_broadcast(patching: Patching) -> None:
    """An update that is refused before its broadcast takes one frame all the same."""
    parse = transfer.TransferEngine.parse_update

    def eat(self: transfer.TransferEngine, update_info: Any) -> Any:
        try:
            return parse(self, update_info)
        except WorkerError:
            receiver: Any = self._receiver
            if receiver is not None and receiver._socket is not None:
                receiver._socket.settimeout(0.3)
                try:
                    head = receiver._socket.recv(17)
                    receiver._socket.recv(int.from_bytes(head[9:17], "big"))
                    receiver._sequence += 1
                except OSError:
                    pass
            raise

    patching.setattr(transfer.TransferEngine, "parse_update", eat)
