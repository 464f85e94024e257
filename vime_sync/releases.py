"""What differs between vLLM's releases for a client, as data."""

from __future__ import annotations

import re
from dataclasses import dataclass

from vime_sync.dtypes import Dtype
from vime_sync.errors import UnsupportedRelease

# Broadcast as they are, tensors need a dtype that NCCL knows (vLLM 0.21.0,
# `vllm.distributed.device_communicators.pynccl_wrapper.ncclDataTypeEnum`; fp8 is the platform's, e4m3fn on CUDA).
NCCL_DTYPES = frozenset(
    {"int8", "uint8", "int32", "int64", "float16", "float32", "float64", "bfloat16", "float8_e4m3fn"}
)


@dataclass(frozen=True, slots=True)
class Release:
    """One release as a client sees it.

    version                 as `/version` says it
    packed_in_update        packing is announced by `/update_weights`, so that it may change from call to call
    zero_dim_packs          a 0-dim tensor can be packed (vLLM 0.21.0 `packed_tensor.unpack_tensor` cannot)
    failed_update_closes    a failed update closes the session; before, it stays open until `/finish_weight_update`
    reset_answers_json      `/reset_prefix_cache` answers `{"success": bool}`; before, an empty body
    warning                 what a user should know, or None
    """

    version: str
    packed_in_update: bool = True
    zero_dim_packs: bool = False
    failed_update_closes: bool = False
    reset_answers_json: bool = False
    warning: str | None = None

    def check(self, *, packed: bool) -> None:
        """Raises UnsupportedRelease when this release cannot be sent to in this form."""
        if packed and not self.packed_in_update:
            raise UnsupportedRelease(
                self.version,
                f"vLLM {self.version} takes packed transfers in the form of 0.28 and later, which is not spoken here",
                next_step="push with --no-packed (packed=False), which works there",
            )

    def carries_packed(self, dtype: Dtype, dimensions: int) -> bool:
        """Whether a tensor can travel in a packed buffer."""
        return self.packed_in_update and dtype.byte_sized and (dimensions > 0 or self.zero_dim_packs)

    def carries_plain(self, dtype: Dtype) -> bool:
        """Whether a tensor can travel in a broadcast of its own."""
        return dtype.name in NCCL_DTYPES


OLDEST = (0, 21)
NEWEST = (0, 33)
_VERSION = re.compile(r"v?(\d+)\.(\d+)(?:\.(\d+))?(?:[.\-+]?[A-Za-z].*|\+.*|\.\d+.*)?", re.ASCII)


def release_of(version: str) -> Release:
    """The release behind a version such as `0.21.0`, `0.22.1rc2` or `0.21.0+cpu`.

    Raises UnsupportedRelease for a version that cannot be read, or one before 0.21.
    """
    matched = _VERSION.fullmatch(version.strip())
    if matched is None:
        raise UnsupportedRelease(
            version,
            f"the engine's version {version[:80]!r} cannot be read",
            next_step="say which release it behaves as with --vllm-version",
        )
    epoch = (int(matched[1]), int(matched[2]))
    if epoch < OLDEST:
        raise UnsupportedRelease(
            version,
            f"vLLM {version} is older than 0.21.0, the first release with these routes in this form",
            next_step="upgrade vLLM, or say which release a development build behaves as with --vllm-version",
        )
    warning = None
    if epoch > NEWEST:
        warning = f"vLLM {version} is newer than any release this client was written for (0.{NEWEST[1]})"
    return Release(
        version=version,
        packed_in_update=epoch < (0, 28),
        zero_dim_packs=epoch >= (0, 32),
        failed_update_closes=epoch >= (0, 23),
        reset_answers_json=epoch >= (0, 26),
        warning=warning,
    )
