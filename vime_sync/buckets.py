"""Which tensors travel together: buckets by bytes, and vLLM's cuts inside a packed one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from vime_sync.dtypes import from_torch_name
from vime_sync.errors import SettingError, UnsupportedTensor
from vime_sync.releases import Release
from vime_sync.tensors import TensorSource

DEFAULT_BUCKET_BYTES = 256 << 20
# vLLM 0.21.0, `vllm.distributed.weight_transfer.packed_tensor.DEFAULT_PACKED_BUFFER_SIZE_BYTES`.
DEFAULT_PACKED_BUFFER_BYTES = 1 << 30


@dataclass(frozen=True, slots=True)
class Bucket:
    """What one call of `/update_weights` announces.

    index       position in the round, from 0
    packed      whether its tensors travel packed
    tensors     in the order in which they are announced
    broadcasts  the tensors of each broadcast: one each when plain, vLLM's cuts when packed
    """

    index: int
    packed: bool
    tensors: tuple[TensorSource, ...]
    broadcasts: tuple[tuple[TensorSource, ...], ...]
    packed_buffer_bytes: int

    @property
    def nbytes(self) -> int:
        """Bytes of all its tensors."""
        return sum(tensor.nbytes for tensor in self.tensors)

    def update_info(self) -> dict[str, Any]:
        """The `update_info` of vLLM 0.21.0 to 0.27.1, `nccl_engine.NCCLWeightTransferUpdateInfo`.

        A plain bucket has the three lists only, which every release takes.
        """
        info: dict[str, Any] = {
            "names": [tensor.name for tensor in self.tensors],
            "dtype_names": [tensor.dtype for tensor in self.tensors],
            "shapes": [list(tensor.shape) for tensor in self.tensors],
        }
        if self.packed:
            info |= {"packed": True, "packed_buffer_size_bytes": self.packed_buffer_bytes}
        return info


def cuts(tensors: Iterable[TensorSource], packed_buffer_bytes: int) -> list[tuple[TensorSource, ...]]:
    """vLLM's packed buffers: one is sent once the sum *exceeds* the size, so a buffer exactly full takes one more.

    Follows vLLM 0.21.0, `vllm.distributed.weight_transfer.packed_tensor.packed_broadcast_producer`.
    """
    buffers: list[tuple[TensorSource, ...]] = []
    filling: list[TensorSource] = []
    size = 0
    for tensor in tensors:
        filling.append(tensor)
        size += tensor.nbytes
        if size > packed_buffer_bytes:
            buffers.append(tuple(filling))
            filling, size = [], 0
    if filling:
        buffers.append(tuple(filling))
    return buffers


def plan(
    tensors: Iterable[TensorSource],
    release: Release,
    *,
    packed: bool,
    bucket_bytes: int = DEFAULT_BUCKET_BYTES,
    packed_buffer_bytes: int = DEFAULT_PACKED_BUFFER_BYTES,
) -> list[Bucket]:
    """Buckets of at most `bucket_bytes` each; a larger tensor gets a bucket of its own.

    A tensor that the wanted form cannot carry goes in a bucket of the other form where the release allows it: a 0-dim
    tensor plain, a dtype that NCCL lacks packed. Packed buckets come first, each sorted by item size, largest first: in
    a buffer a tensor must begin at a multiple of its item size, or no release can unpack it.

    Raises SettingError for sizes below 1 and a name that comes twice, UnsupportedTensor for what no form can carry.
    """
    for setting, size in (("bucket size", bucket_bytes), ("packed buffer size", packed_buffer_bytes)):
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:
            raise SettingError(setting, f"{size!r} is not a whole number of bytes above 0")
    release.check(packed=packed)
    packed_ones, plain_ones = _by_form(tensors, release, packed=packed)
    buckets: list[Bucket] = []
    for group in _by_bytes(packed_ones, bucket_bytes):
        ordered = sorted(group, key=lambda tensor: -_item_size(tensor))
        broadcasts = tuple(cuts(ordered, packed_buffer_bytes))
        buckets.append(Bucket(len(buckets), True, tuple(ordered), broadcasts, packed_buffer_bytes))
    for group in _by_bytes(plain_ones, bucket_bytes):
        broadcasts = tuple((tensor,) for tensor in group)
        buckets.append(Bucket(len(buckets), False, tuple(group), broadcasts, packed_buffer_bytes))
    return buckets


def _by_form(
    tensors: Iterable[TensorSource], release: Release, *, packed: bool
) -> tuple[list[TensorSource], list[TensorSource]]:
    packed_ones: list[TensorSource] = []
    plain_ones: list[TensorSource] = []
    stranded: list[str] = []
    seen: set[str] = set()
    for tensor in tensors:
        if tensor.name in seen:
            raise SettingError("tensors", f"the name {tensor.name!r} comes twice")
        seen.add(tensor.name)
        dtype = from_torch_name(tensor.dtype)
        can_pack = dtype is not None and release.carries_packed(dtype, len(tensor.shape))
        can_go_plain = dtype is not None and release.carries_plain(dtype)
        if can_pack and (packed or not can_go_plain):
            packed_ones.append(tensor)
        elif can_go_plain:
            plain_ones.append(tensor)
        else:
            stranded.append(f"{tensor.name} ({tensor.dtype} {list(tensor.shape)})")
    if stranded:
        shown = ", ".join(stranded[:5]) + (f" and {len(stranded) - 5} more" if len(stranded) > 5 else "")
        raise UnsupportedTensor(
            f"vLLM {release.version}",
            f"cannot receive {shown} in any form",
            next_step="convert them, or leave them out",
        )
    return packed_ones, plain_ones


def _by_bytes(tensors: Sequence[TensorSource], bucket_bytes: int) -> list[list[TensorSource]]:
    groups: list[list[TensorSource]] = []
    size = 0
    for tensor in tensors:
        if not groups or (size + tensor.nbytes > bucket_bytes and size and tensor.nbytes):
            groups.append([])
            size = 0
        groups[-1].append(tensor)
        size += tensor.nbytes
    return groups


def _item_size(tensor: TensorSource) -> int:
    dtype = from_torch_name(tensor.dtype)
    return dtype.item_size if dtype is not None else 1
