"""The worker's weight transfer engine: parse, meet the trainer, receive, hand to the loader.

Follows vLLM 0.21.0, `vllm.distributed.weight_transfer.nccl_engine.NCCLWeightTransferEngine`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from mock_vllm.engine.digests import Received, TensorSplitter
from mock_vllm.engine.dtypes import TORCH_MODULES, find_dtype
from mock_vllm.engine.infos import InfoParser, check_lengths, check_rendezvous
from mock_vllm.engine.packing import Announced, announced_packed, check_unpacking, cut_buffers
from mock_vllm.engine.shapes import check_empty, refuse_module_as_dtype
from mock_vllm.errors import WorkerError
from mock_vllm.profiles.profile import Profile
from mock_vllm.receivers.receiver import PlaneEvent, Receiver, ReceiverFactory

Loader = Callable[[list[Received]], None]
"""Takes the tensors of one broadcast. Raises WorkerError as the release's model loader does."""


class TransferEngine:
    """One rank's end of the weight transfer.

    Args:
        profile: the release.
        worker_rank: this worker's rank among TP × PP × DP, from 0.
        make_receiver: makes the receiver of each new group.
        on_event: told what happens on the plane.
        keep_bytes: keep the raw bytes of the tensors.
    """

    def __init__(
        self,
        profile: Profile,
        worker_rank: int,
        make_receiver: ReceiverFactory,
        on_event: PlaneEvent,
        keep_bytes: bool,
    ) -> None:
        self._worker_rank = worker_rank
        self._make_receiver = make_receiver
        self._on_event = on_event
        self._keep_bytes = keep_bytes
        self._profile = profile
        check_init = check_rendezvous if profile.unique_id else None
        self._init_infos = InfoParser(profile.init_info, "init_info", profile.engine_class, check_init)
        self._update_infos = InfoParser(profile.update_info, "update_info", profile.engine_class, check_lengths)
        self._receiver: Receiver | None = None
        self._joining: Receiver | None = None
        self._packing: Any = None
        self._abandoned = False

    def init(self, init_info: Any) -> dict[str, Any]:
        """Parse `init_info` and meet the trainer; blocks until the group is complete. Returns the group's facts.

        A group that existed before is dropped once the new one exists.

        Raises:
            WorkerError: the info does not fit, or the group did not come about.
        """
        info = self._init_infos.parse(init_info)
        try:
            rank = self._worker_rank + info.rank_offset
        except TypeError as error:
            raise WorkerError(str(error)) from None
        if info.master_address is None:
            raise WorkerError("the TCP plane meets at an address; a group named by NCCL's unique id needs NCCL")
        receiver = self._make_receiver(self._on_event)
        self._joining = receiver
        if self._abandoned:
            receiver.abandon()
        try:
            receiver.join(info.master_address, info.master_port, rank, info.world_size)
        finally:
            self._joining = None
        if self._profile.packed_in_init:
            self._packing = info
        old, self._receiver = self._receiver, receiver
        if old is not None:
            old.close()
            self._on_event("left", "another group took its place")
        return {
            "master_address": info.master_address,
            "master_port": info.master_port,
            "rank_offset": info.rank_offset,
            "world_size": info.world_size,
        }

    def parse_update(self, update_info: Any) -> Any:
        """Return the typed update. Raises WorkerError where it does not fit."""
        return self._update_infos.parse(update_info)

    def receive(self, info: Any, load: Loader) -> None:
        """Receive every tensor that `info` announces and hand it to `load`, a broadcast at a time.

        Raises:
            WorkerError: there is no group, a dtype is unknown or cannot travel, the plane failed, or the loader did.
        """
        receiver = self._receiver
        if receiver is None:
            raise WorkerError(self._profile.session.not_initialized)
        packing = self._packing if self._profile.packed_in_init else info
        if packing.packed:
            self._receive_packed(receiver, info, packing, load)
        else:
            self._receive_plain(receiver, info, load)

    def abandon(self) -> None:
        """Wake up whatever this rank waits for, from another thread. It is of no use afterwards."""
        self._abandoned = True
        for receiver in (self._joining, self._receiver):
            if receiver is not None:
                receiver.abandon()

    def shutdown(self) -> None:
        """Leave the group."""
        receiver, self._receiver = self._receiver, None
        if receiver is not None:
            receiver.close()
            self._on_event("left", "the engine was reset or shut down")

    def _receive_plain(self, receiver: Receiver, info: Any, load: Loader) -> None:
        for name, dtype_name, shape in zip(info.names, info.dtype_names, info.shapes, strict=False):
            texts = self._profile.torch_texts
            if dtype_name in TORCH_MODULES:
                raise refuse_module_as_dtype(shape, texts)
            dtype = find_dtype(dtype_name)
            made = check_empty(shape, dtype.itemsize, texts)
            if not dtype.in_nccl:
                raise WorkerError(self._profile.unsupported_dtype.format(dtype=dtype))
            tensor = Announced(name, dtype, made, math.prod(made) * dtype.itemsize)
            load(self._broadcast(receiver, [tensor]))

    def _receive_packed(self, receiver: Receiver, info: Any, packing: Any, load: Loader) -> None:
        tensors = announced_packed(info.names, info.dtype_names, info.shapes)
        size, count = packing.packed_buffer_size_bytes, packing.packed_num_buffers
        for bucket in cut_buffers(tensors, size, count, self._profile.no_buffers):
            received = self._broadcast(receiver, bucket)
            check_unpacking(bucket, self._profile.unpacks_scalars)
            load(received)

    def _broadcast(self, receiver: Receiver, tensors: list[Announced]) -> list[Received]:
        nbytes = sum(tensor.nbytes for tensor in tensors)
        check_empty(nbytes, 1, self._profile.torch_texts)
        splitter = TensorSplitter(tensors, self._keep_bytes)
        receiver.broadcast(nbytes, splitter)
        return splitter.finish(receiver.delivers_bytes)
