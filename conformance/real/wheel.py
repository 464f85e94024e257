"""What a wheel of vLLM says of itself."""

from __future__ import annotations

import hashlib
import zipfile
from dataclasses import dataclass
from email.parser import Parser
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from conformance.real.errors import WheelError

TORCH_FAMILY = ("torch", "torchvision", "torchaudio", "torchcodec")
"""Torch is installed on its own; the others are CUDA builds whose import breaks beside a CPU torch: left out."""


@dataclass(frozen=True)
class Wheel:
    """``torch``: the version that the wheel pins for this machine, as ``2.13.0+cpu``; ``requirements``: the rest."""

    path: Path
    name: str
    version: str
    torch: str
    requirements: tuple[str, ...]

    @property
    def torch_release(self) -> str:
        """``torch`` without the local part: what tells apart the groups of releases that do not mix."""
        return self.torch.partition("+")[0]


def read_wheel(path: Path, release: str) -> Wheel:
    """The wheel of vLLM ``release`` at ``path``.

    Raises WheelError when it is no wheel, another package or release, or pins no torch for this machine.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            (inside,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
            metadata = Parser().parsestr(archive.read(inside).decode())
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        raise WheelError(path, f"no readable wheel ({error})") from error
    name, version = str(metadata["Name"]), str(metadata["Version"])
    try:
        same = Version(version).base_version == release
        requirements = [Requirement(text) for text in metadata.get_all("Requires-Dist", [])]
    except (InvalidVersion, InvalidRequirement) as error:
        raise WheelError(path, f"its metadata cannot be read ({error})") from error
    if not canonicalize_name(name).startswith("vllm") or not same:
        raise WheelError(path, f"it is {name} {version}, vLLM {release} was asked for")
    wanted = [one for one in requirements if one.marker is None or one.marker.evaluate({"extra": ""})]
    pins = [one.specifier for one in wanted if one.name == "torch"]
    exact = [spec.version for pin in pins for spec in pin if spec.operator == "=="]
    if len(exact) != 1:
        raise WheelError(path, f"it pins no single torch for this machine: {[str(pin) for pin in pins]}")
    others = tuple(str(one) for one in wanted if canonicalize_name(one.name) not in TORCH_FAMILY)
    return Wheel(path, name, version, exact[0], others)


def sha256(path: Path) -> str:
    """Hex digest of a file. Raises OSError."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
