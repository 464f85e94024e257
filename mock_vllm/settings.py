"""What a mock is started with, checked once."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from pathlib import Path

from mock_vllm.errors import SettingsError
from mock_vllm.profiles import DEFAULT_RELEASE, Profile, find_profile

RECEIVERS = ("tcp", "none")
EXECUTORS = ("auto", "uni", "mp")
KEEP = ("digests", "bytes")
ON_MISMATCH = ("hang", "fail")
MOST_RANKS = 1024


@dataclass(frozen=True)
class Settings:
    """Everything about one mock server.

    Attributes:
        model: a model directory, which is checked, or any other name, which accepts any tensor.
        vllm_version: the release to imitate.
        host, port: where to listen; port 0 takes a free one.
        receiver: `tcp` (the TCP plane) or `none` (metadata only).
        transfer_timeout: seconds to wait for the trainer to join, and for the next bytes of a broadcast.
        on_mismatch: `hang` until the deadline as NCCL would when byte counts differ, or `fail` at once.
        keep: `digests` of the received tensors, or their `bytes` too.
        tensor_parallel_size, pipeline_parallel_size, data_parallel_size: their product is the number of ranks.
        executor: `mp` or `uni` choose the wording of engine errors; `auto` is `mp`, as a CPU build has it.
        dev_mode: serve the development routes (`VLLM_SERVER_DEV_MODE=1`).
        weight_transfer: a weight transfer config was given.
        served_model_name: id in `/v1/models`; the model by default.
        stay_when_dead: an engine that died leaves the server up, answering 503, instead of ending it as vLLM does.
        max_model_len: in tokens; the model's own by default.
    """

    model: str
    vllm_version: str = DEFAULT_RELEASE
    host: str = "127.0.0.1"
    port: int = 8000
    receiver: str = "tcp"
    transfer_timeout: float = 300.0
    on_mismatch: str = "hang"
    keep: str = "digests"
    tensor_parallel_size: int = 1
    pipeline_parallel_size: int = 1
    data_parallel_size: int = 1
    executor: str = "auto"
    dev_mode: bool = True
    weight_transfer: bool = True
    served_model_name: str | None = None
    max_model_len: int | None = None
    stay_when_dead: bool = False

    def __post_init__(self) -> None:
        """Raises: SettingsError: one of the values cannot be."""
        find_profile(self.vllm_version)
        _one_of("--receiver", self.receiver, RECEIVERS)
        _one_of("--on-mismatch", self.on_mismatch, ON_MISMATCH)
        _one_of("--keep", self.keep, KEEP)
        _one_of("--distributed-executor-backend", self.executor, EXECUTORS)
        if not self.model:
            raise SettingsError("MODEL", "is empty; give a directory or a name")
        if not 0 <= self.port <= 65535:
            raise SettingsError("--port", f"{self.port} is no port; give 0 (any free one) to 65535")
        if not 0 < self.transfer_timeout < float("inf"):
            raise SettingsError("--transfer-timeout", f"{self.transfer_timeout} is not a number of seconds above 0")
        for option in ("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size"):
            if getattr(self, option) < 1:
                raise SettingsError(f"--{option.replace('_', '-')}", f"{getattr(self, option)} is below 1")
        if self.world_size > MOST_RANKS:
            raise SettingsError(
                "--tensor-parallel-size", f"{self.world_size} ranks in all are more than a mock serves ({MOST_RANKS})"
            )
        if self.model.startswith(("/", "./", "../", "~")) and not self.is_directory:
            raise SettingsError("MODEL", f"{self.model} is no directory; a bare name must not look like a path")
        if self.executor == "uni" and self.world_size > 1:
            raise SettingsError("--distributed-executor-backend", f"uni has one rank, {self.world_size} were asked for")

    @property
    def profile(self) -> Profile:
        """The release's profile."""
        return find_profile(self.vllm_version)

    @property
    def world_size(self) -> int:
        """Ranks in all: tensor × pipeline × data parallel."""
        return self.world_size_without_dp * self.data_parallel_size

    @property
    def world_size_without_dp(self) -> int:
        """Ranks of one data parallel replica."""
        return self.tensor_parallel_size * self.pipeline_parallel_size

    @property
    def is_directory(self) -> bool:
        """The model is a directory, so names and shapes are checked."""
        return Path(self.model).is_dir()

    @property
    def url(self) -> str:
        """Where clients find the server; a wildcard host is shown as the loopback address."""
        host = self.host
        if host in ("0.0.0.0", "::", ""):
            host = "127.0.0.1" if host != "::" else "::1"
        return f"http://{_bracketed(host)}:{self.port}"


def _one_of(option: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise SettingsError(option, f"{value!r} is not one of {', '.join(allowed)}")


def _bracketed(host: str) -> str:
    try:
        return f"[{host}]" if ipaddress.ip_address(host).version == 6 else host
    except ValueError:
        return host
