"""Which tensors travel together: buckets by bytes, and vLLM's cuts inside a packed one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from vime_sync.dtypes import from_torch_name
from vime_sync.errors import SettingError
from vime_sync.forms import Form, choose_form
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
    announced   bytes of the packed buffer size that the call has to state; None when plain, or where init stated it
    """

    index: int
    packed: bool
    tensors: tuple[TensorSource, ...]
    broadcasts: tuple[tuple[TensorSource, ...], ...]
    announced: int | None = None

    @property
    def nbytes(self) -> int:
        """Bytes of all its tensors."""
        return sum(tensor.nbytes for tensor in self.tensors)

    def update_info(self) -> dict[str, Any]:
        """The `update_info`, as `nccl_engine.NCCLWeightTransferUpdateInfo` of vLLM 0.21.0 takes it.

        A plain bucket has the three lists only, which every release takes. So has a packed one from 0.28 on, which
        refuses any word of packing here.
        """
        info: dict[str, Any] = {
            "names": [tensor.name for tensor in self.tensors],
            "dtype_names": [tensor.dtype for tensor in self.tensors],
            "shapes": [list(tensor.shape) for tensor in self.tensors],
        }
        if self.announced is not None:
            info |= {"packed": True, "packed_buffer_size_bytes": self.announced}
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
    packed: bool | None = None,
    bucket_bytes: int = DEFAULT_BUCKET_BYTES,
    packed_buffer_bytes: int = DEFAULT_PACKED_BUFFER_BYTES,
) -> list[Bucket]:
    """`buckets_of` the tensors, in the form that `choose_form` finds. Raises what both raise."""
    form = choose_form(tensors, release, packed=packed)
    return buckets_of(form, release, bucket_bytes=bucket_bytes, packed_buffer_bytes=packed_buffer_bytes)


def buckets_of(
    form: Form,
    release: Release,
    *,
    bucket_bytes: int = DEFAULT_BUCKET_BYTES,
    packed_buffer_bytes: int = DEFAULT_PACKED_BUFFER_BYTES,
) -> list[Bucket]:
    """Buckets of at most `bucket_bytes` each; a larger tensor gets a bucket of its own.

    Packed buckets come first, each sorted by item size, largest first: in a buffer a tensor must begin at a multiple of
    its item size, or no release can unpack it.

    Raises SettingError for sizes below 1.
    """
    for setting, size in (("bucket size", bucket_bytes), ("packed buffer size", packed_buffer_bytes)):
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:
            raise SettingError(setting, f"{size!r} is not a whole number of bytes above 0")
    announced = packed_buffer_bytes if release.packed_in_update else None
    buckets: list[Bucket] = []
    for group in _by_bytes(form.packed_ones, bucket_bytes):
        ordered = sorted(group, key=lambda tensor: -_item_size(tensor))
        broadcasts = tuple(cuts(ordered, packed_buffer_bytes))
        buckets.append(Bucket(len(buckets), True, tuple(ordered), broadcasts, announced))
    for group in _by_bytes(form.plain_ones, bucket_bytes):
        broadcasts = tuple((tensor,) for tensor in group)
        buckets.append(Bucket(len(buckets), False, tuple(group), broadcasts))
    return buckets


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
