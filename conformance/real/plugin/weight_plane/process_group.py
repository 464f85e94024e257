"""Where vLLM makes its NCCL communicator, by release."""

from __future__ import annotations

import importlib.util
from types import ModuleType
from typing import Any

from .communicator import meet
from .errors import MeetingError

_COMMON = "vllm.distributed.weight_transfer.nccl_common"


def install(engine_class: Any) -> None:
    """Put the plane there. Follows `vllm.distributed.weight_transfer` of 0.21.0 to 0.32.0."""
    if importlib.util.find_spec(_COMMON) is None:
        in_engine(engine_class)
    else:
        in_common(importlib.import_module(_COMMON))


def in_engine(engine_class: Any) -> None:
    """0.21.0 to 0.24.0: a static method of `nccl_engine.NCCLWeightTransferEngine`."""
    engine_class._stateless_init_process_group = staticmethod(meet)


def in_common(common: ModuleType) -> None:
    """0.25.0 on: a function of `nccl_common`, which its neighbours look up at each call.

    From 0.30.0 on, a second one meets by `nccl_unique_id_b64`, an identity that names no address.
    """
    common.stateless_init_process_group = meet  # type: ignore[attr-defined]
    if hasattr(common, "uid_init_process_group"):
        common.uid_init_process_group = _no_address  # type: ignore[attr-defined]


def _no_address(_unique_id: bytes, rank: int, world_size: int, device: Any = None) -> None:  # noqa: ARG001 (vLLM's)
    raise MeetingError(
        "?", "?", rank, world_size, "nccl_unique_id_b64 names no address, and without NCCL one is needed"
    )
