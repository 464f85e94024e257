"""What differs between vLLM's releases for a client, as data."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

from vime_sync.dtypes import Dtype
from vime_sync.errors import SettingError, UnsupportedRelease

# Broadcast as they are, tensors need a dtype that NCCL knows (vLLM 0.21.0,
# `vllm.distributed.device_communicators.pynccl_wrapper.ncclDataTypeEnum`; fp8 is the platform's, e4m3fn on CUDA).
NCCL_DTYPES = frozenset(
    {"int8", "uint8", "int32", "int64", "float16", "float32", "float64", "bfloat16", "float8_e4m3fn"}
)


@dataclass(frozen=True, slots=True)
class Release:
    """One release as a client sees it.

    version                 as `/version` says it
    epoch                   a letter for the releases that are alike to a client
    since                   major and minor number of the first release of the epoch
    packed_in_update        packing is announced by `/update_weights`, so that it may change from call to call; later it
                            is announced by `/init_weight_transfer_engine`, once for the whole group
    start_reads_format      `/start_weight_update` heeds `is_checkpoint_format`; later it ignores it without a word
    zero_dim_packs          a 0-dim tensor can be packed (vLLM 0.21.0 `packed_tensor.unpack_tensor` cannot)
    failed_update_closes    an update that fails in a worker closes the session and leaves the parameters without data;
                            before, the session stays open until `/finish_weight_update`
    reset_answers_json      `/reset_prefix_cache` answers `{"success": bool}`; before, an empty body
    has_weight_version      `/finish_weight_update` takes a `weight_version`, and `/weight_info` shows it
    empty_update_replays    an update without names repeats the metadata of the one before; earlier, it does nothing
    warning                 what a user should know, or None
    """

    version: str
    epoch: str
    since: tuple[int, int]
    packed_in_update: bool
    start_reads_format: bool
    zero_dim_packs: bool
    failed_update_closes: bool
    reset_answers_json: bool
    has_weight_version: bool
    empty_update_replays: bool
    warning: str | None = None

    def carries_packed(self, dtype: Dtype, dimensions: int) -> bool:
        """Whether a tensor can travel in a packed buffer."""
        return dtype.byte_sized and (dimensions > 0 or self.zero_dim_packs)

    def carries_plain(self, dtype: Dtype) -> bool:
        """Whether a tensor can travel in a broadcast of its own."""
        return dtype.name in NCCL_DTYPES

    def check_weight_version(self, weight_version: str) -> None:
        """Raises SettingError for an empty one, UnsupportedRelease where the release knows of none."""
        if not weight_version:
            raise SettingError("weight version", "is empty", next_step="name one, or leave it out")
        if not self.has_weight_version:
            raise UnsupportedRelease(
                self.version,
                f"vLLM {self.version} keeps no weight version: 0.27.0 is the first that does",
                next_step="push without a weight version",
            )

    def init_packing(self, *, packed: bool, packed_buffer_bytes: int) -> dict[str, Any]:
        """What `init_info` says of packing; nothing where updates say it, and nothing for plain groups.

        Follows vLLM 0.28.0, `vllm.distributed.weight_transfer.nccl_common`, the worker's init info: `packed` is false
        unless it is said, and the two sides must cut by the same size.
        """
        if self.packed_in_update or not packed:
            return {}
        return {"packed": True, "packed_buffer_size_bytes": packed_buffer_bytes}


# fmt: off
#                                  packed    start     0-dim    failed    reset     has      empty
#                                  in        reads     packs    update    answers   weight   update
#       first     epoch  since     update    format             closes    JSON      version  replays
EPOCHS = (
    Release("0.21.0", "A", (0, 21), True,     True,     False,   False,    False,    False,   False),
    Release("0.23.0", "B", (0, 23), True,     True,     False,   True,     False,    False,   False),
    Release("0.25.0", "C", (0, 25), True,     False,    False,   True,     False,    False,   False),
    Release("0.26.0", "D", (0, 26), True,     False,    False,   True,     True,     False,   False),
    Release("0.27.0", "E", (0, 27), True,     False,    False,   True,     True,     True,    False),
    Release("0.28.0", "F", (0, 28), False,    False,    False,   True,     True,     True,    False),
    Release("0.29.0", "G", (0, 29), False,    False,    False,   True,     True,     True,    False),
    Release("0.30.0", "H", (0, 30), False,    False,    False,   True,     True,     True,    False),
    Release("0.32.0", "I", (0, 32), False,    False,    True,    True,     True,     True,    False),
    Release("0.33.0", "J", (0, 33), False,    False,    True,    True,     True,     True,    True),
)
# fmt: on
OLDEST = EPOCHS[0].since
NEWEST = EPOCHS[-1].since
# Written from its source: no server of it has been pushed into yet.
UNVERIFIED = (0, 33)

_VERSION = re.compile(r"v?(\d+)\.(\d+)(?:\.(\d+))?(?:[.\-+]?[A-Za-z].*|\+.*|\.\d+.*)?", re.ASCII)


def release_of(version: str) -> Release:
    """The release behind a version such as `0.21.0`, `0.22.1rc2` or `0.21.0+cpu`.

    Raises UnsupportedRelease for a version that cannot be read, or one before 0.21.
    """
    numbers = _numbers(version)
    if numbers is None:
        raise UnsupportedRelease(
            version,
            f"the engine's version {version[:80]!r} cannot be read",
            next_step="say which release it behaves as with --vllm-version",
        )
    if numbers < OLDEST:
        raise UnsupportedRelease(
            version,
            f"vLLM {version} is older than 0.21.0, the first release with these routes in this form",
            next_step="upgrade vLLM, or say which release a development build behaves as with --vllm-version",
        )
    warning = None
    if numbers > NEWEST:
        warning = f"vLLM {version} is newer than any release this client was written for (0.{NEWEST[1]})"
    elif numbers >= UNVERIFIED:
        warning = f"vLLM {version} is known from its source alone: pushing into it is not verified"
    epoch = [known for known in EPOCHS if known.since <= numbers][-1]
    return replace(epoch, version=version, warning=warning)


def assumed_release(version: object) -> Release:
    """The release that a caller says to go by. Raises SettingError when it cannot be read, UnsupportedRelease."""
    if not isinstance(version, str) or _numbers(version) is None:
        advice = "write the release as 0.21.0, or leave it out"
        raise SettingError("vLLM version", f"{version!r:.100} cannot be read", next_step=advice)
    return release_of(version)


def check_assumed(assumed: Release, stated: str) -> None:
    """Raises UnsupportedRelease when an engine that states a release is to be taken for another one.

    A development build may be taken for any: its version follows the last tag that its clone knew (`0.1.dev7+gabc`).
    So may one whose version cannot be read.
    """
    numbers = _numbers(stated)
    if numbers is None or "dev" in stated or numbers == _numbers(assumed.version):
        return
    raise UnsupportedRelease(
        stated,
        f"the engine states vLLM {stated[:80]}, which contradicts {assumed.version} as given with --vllm-version",
        next_step="leave --vllm-version (vllm_version) out: it is for development builds",
    )


def _numbers(version: str) -> tuple[int, int] | None:
    """Major and minor number, or None where they cannot be read."""
    matched = _VERSION.fullmatch(version.strip())
    return (int(matched[1]), int(matched[2])) if matched is not None else None
