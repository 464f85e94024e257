"""Which tensors of an update share one packed broadcast."""

from __future__ import annotations

from collections.abc import Sequence

DEFAULT_BUFFER_BYTES = 1024**3


def packed_groups(sizes: Sequence[int], buffer_bytes: int = DEFAULT_BUFFER_BYTES) -> list[list[int]]:
    """Indices of ``sizes`` (bytes, in list order) grouped into broadcasts.

    A group ends once its sum *exceeds* ``buffer_bytes`` after a tensor was appended, so a group that is exactly full
    takes one more; what is left at the end is the last group. Follows vLLM 0.21.0,
    ``vllm.distributed.weight_transfer.packed_tensor.packed_broadcast_consumer``.
    """
    groups: list[list[int]] = []
    current: list[int] = []
    total = 0
    for index, size in enumerate(sizes):
        current.append(index)
        total += size
        if total > buffer_bytes:
            groups.append(current)
            current, total = [], 0
    if current:
        groups.append(current)
    return groups
