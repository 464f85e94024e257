"""What vLLM's engine calls in NCCL's place: an object with `broadcast(tensor, src, stream)`."""

from __future__ import annotations

from typing import Any

import torch

from .receiver import Receiver, join
from .sender import Sender, gather
from .settings import read_settings
from .tensor_bytes import memory


class PlaneCommunicator:
    """A rank's end of the group. Follows `PyNcclCommunicator` of vLLM 0.21.0
    (`vllm.distributed.device_communicators.pynccl`), as far as the weight-transfer engine uses it.
    """

    def __init__(self, end: Receiver | Sender, rank: int, world_size: int) -> None:
        self._end = end
        self.rank = rank
        self.world_size = world_size

    def broadcast(self, tensor: torch.Tensor, src: int, stream: Any = None) -> None:  # noqa: ARG002 (NCCL's signature)
        """Send `tensor` (rank 0) or fill it (the others). Blocks until done; `stream` is ignored.

        Raises ValueError for a dtype that NCCL does not know, before anything is sent or received, in vLLM's own words
        (`pynccl_wrapper.ncclDataTypeEnum.from_torch`); ValueError when `src` is not 0; a `BroadcastError` when the
        bytes do not arrive.
        """
        from vllm.distributed.device_communicators.pynccl_wrapper import ncclDataTypeEnum

        ncclDataTypeEnum.from_torch(tensor.dtype)
        if src != 0:
            raise ValueError(f"the plane broadcasts from rank 0 only, got src={src}")
        if isinstance(self._end, Sender):
            self._end.send(memory(tensor))
        else:
            self._end.receive(memory(tensor))

    def close(self) -> None:
        """Leave the group. May be called at any time, and again."""
        self._end.close()

    def destroy(self) -> None:
        """Leave the group: the engine's `shutdown` calls it from 0.32.0 on, before that it drops its reference."""
        self.close()


def meet(master_address: str, master_port: int, rank: int, world_size: int, device: Any = None) -> PlaneCommunicator:  # noqa: ARG001
    """Stands in for vLLM's `stateless_init_process_group` (see `process_group`).

    Rank 0 listens, the others connect; all return once every rank is there. `device` is ignored.
    Raises `MeetingError` when the group does not come to be, for a rank beyond it too.
    """
    settings = read_settings()
    end: Receiver | Sender
    if rank == 0:
        end = gather(master_address, master_port, world_size, settings)
    else:
        end = join(master_address, master_port, rank, world_size, settings)
    return PlaneCommunicator(end, rank, world_size)
