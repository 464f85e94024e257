"""What many cases use: the plain requests, small tensors, and shorthands for what a case needs."""

from __future__ import annotations

import hashlib
from dataclasses import replace

from conformance.case import FIRST_RELEASE, PLANE_TAG, RELEASES, Case, Need
from conformance.request_data import FINISH_PATH, INIT_PATH, START_PATH, UPDATE_PATH
from conformance.steps import Call, Init, ModelEquals, Placeholder, Step, Update
from conformance.tensor import Tensor, byte_count
from conformance.tiny_model import tensors

ROUTER = "vllm.entrypoints.serve.rlhf.api_router"
WORKER = "vllm.v1.worker.gpu_worker.Worker"
NCCL_ENGINE = "vllm.distributed.weight_transfer.nccl_engine.NCCLWeightTransferEngine"
ENGINE_BASE = "vllm.distributed.weight_transfer.base.WeightTransferEngine"
PACKED = "vllm.distributed.weight_transfer.packed_tensor.packed_broadcast_consumer"

LATER_ROUTER = "vllm.entrypoints.rl.online.api_router"
ONLY_0_32 = ("0.32.0",)

PLANE: frozenset[Need] = frozenset({"data plane"})
CHECKED: frozenset[Need] = frozenset({"data plane", "checked model"})
DIGESTS: frozenset[Need] = frozenset({"data plane", "digests"})
MODEL: frozenset[Need] = frozenset({"data plane", "digests", "tiny model"})
ON_PLANE = frozenset({PLANE_TAG})

INIT = Init()
START = Call("POST", START_PATH, json={})
START_KERNEL = Call("POST", START_PATH, json={"is_checkpoint_format": False})
FINISH = Call("POST", FINISH_PATH, json={})
IS_PAUSED = Call("GET", "/is_paused")
RESUME = Call("POST", "/resume")
EMPTY_UPDATE = Update()


def post(path: str, body: object) -> Call:
    """A POST with a JSON body."""
    return Call("POST", path, json=body)


def post_raw(path: str, body: bytes) -> Call:
    """A POST with exactly these bytes, announced as JSON."""
    return Call("POST", path, raw=body)


def bare_post(path: str) -> Call:
    """A POST without a body."""
    return Call("POST", path)


def filled(name: str, dtype: str, *shape: int) -> Tensor:
    """A tensor of bytes that its name decides, finite as a float and valid as a bool."""
    count = byte_count(dtype, shape)
    blocks = (hashlib.sha256(f"{name} {index}".encode()).digest() for index in range(count // 32 + 1))
    # Without its two upper bits no byte can be the exponent of an infinity or a NaN, in any float format.
    mask = 0x01 if dtype == "bool" else 0x3F
    data = bytes(byte & mask for byte in b"".join(blocks)[:count])
    return Tensor(name, dtype, shape, data)


def ignored(label: str, dtype: str, *shape: int) -> Tensor:
    """A tensor under a name inside the model that 0.21's loader ignores, so that any dtype and shape may travel."""
    return filled(f"model.nope.{label}", dtype, *shape)


def dropped(label: str, dtype: str, *shape: int) -> Tensor:
    """A tensor that every release's loader drops, for cases of later releases: any dtype and shape may travel."""
    return filled(f"model.{label}.rotary_emb.inv_freq", dtype, *shape)


def parameter(name: str, checkpoint: str = "B") -> Tensor:
    """One tensor of the tiny model."""
    return next(tensor for tensor in tensors(checkpoint) if tensor.name == name)


def packed_init(**info: object) -> Init:
    """An init of 0.28 and later, where the group's packing is said."""
    return Init(info={"packed": True, **info})


def in_packed_group(*tensors: Tensor, buffer_bytes: int | None = None) -> Update:
    """An update in a group whose init said that its buckets are packed (into buffers of ``buffer_bytes``)."""
    return Update(tensors, packed=True, buffer_bytes=buffer_bytes, packed_at_init=True)


def completion(*prompt: int, tokens: int = 4) -> Call:
    """A greedy completion of a prompt of token ids."""
    body = {"model": Placeholder.MODEL, "prompt": list(prompt), "max_tokens": tokens, "temperature": 0}
    return Call("POST", "/v1/completions", json=body)


def session(*updates: Step) -> tuple[Step, ...]:
    """Init, start, the updates, finish."""
    return (INIT, START, *updates, FINISH)


def bucketed(items: tuple[Tensor, ...], size: int) -> list[tuple[Tensor, ...]]:
    """``items`` in buckets of ``size`` tensors."""
    return [items[start : start + size] for start in range(0, len(items), size)]


def sync(
    checkpoint: str, bucket: int = 25, packed: bool = False, buffer_bytes: int | None = None, at_init: bool = False
) -> tuple[Step, ...]:
    """A whole session that pushes a checkpoint, ``bucket`` tensors an update, and the proof that it arrived."""
    updates = [
        Update(part, packed, buffer_bytes, packed_at_init=at_init) for part in bucketed(tensors(checkpoint), bucket)
    ]
    return (START, *updates, FINISH, ModelEquals(checkpoint))


def plain_and_packed(plain: Case, packed_id: str, buffer_bytes: int | None = None) -> list[Case]:
    """A case, and the same one with every update packed (into buffers of ``buffer_bytes``)."""

    def pack(step: Step) -> Step:
        if not isinstance(step, Update):
            return step
        return replace(step, packed=True, buffer_bytes=step.buffer_bytes if buffer_bytes is None else buffer_bytes)

    packed = replace(
        plain, id=packed_id, sentence=f"{plain.sentence} (packed)", steps=tuple(pack(step) for step in plain.steps)
    )
    return [replace(plain, sentence=f"{plain.sentence} (plain)"), packed]


__all__ = [
    "CHECKED",
    "DIGESTS",
    "EMPTY_UPDATE",
    "ENGINE_BASE",
    "FINISH",
    "FINISH_PATH",
    "FIRST_RELEASE",
    "INIT",
    "INIT_PATH",
    "IS_PAUSED",
    "LATER_ROUTER",
    "MODEL",
    "NCCL_ENGINE",
    "ONLY_0_32",
    "ON_PLANE",
    "PACKED",
    "PLANE",
    "RELEASES",
    "RESUME",
    "ROUTER",
    "START",
    "START_KERNEL",
    "START_PATH",
    "UPDATE_PATH",
    "WORKER",
    "bare_post",
    "bucketed",
    "completion",
    "dropped",
    "filled",
    "ignored",
    "in_packed_group",
    "packed_init",
    "parameter",
    "plain_and_packed",
    "post",
    "post_raw",
    "session",
    "sync",
]
