"""Which modules of an installed vLLM differ from the project's own wheel of that release."""

from __future__ import annotations

import hashlib
import shutil
import zipfile
from pathlib import Path

from conformance.real.environment import Environment
from conformance.real.steps import Facts, Shell
from conformance.real.wheel import sha256


def fetch_and_compare(target: Environment, shell: Shell) -> Facts:
    """Downloads the wheel ``vllm`` of the release (hundreds of MB), compares, deletes it. Raises StepError, OSError."""
    folder = target.folder / "official"
    shutil.rmtree(folder, ignore_errors=True)
    pip = [str(target.python), "-m", "pip", "--disable-pip-version-check", "--no-input"]
    download = ["download", "--no-deps", "--only-binary", ":all:", "--dest", str(folder), f"vllm=={target.version}"]
    shell.run("official wheel", [*pip, *download])
    (wheel,) = folder.glob("*.whl")
    (site_packages,) = target.venv.glob("lib/python3*/site-packages")
    facts = compare(wheel, site_packages)
    shutil.rmtree(folder)
    return facts


def compare(wheel: Path, site_packages: Path) -> Facts:
    """Names of ``vllm/**/*.py`` that differ: changed here, missing here, added here. Raises OSError, BadZipFile."""
    with zipfile.ZipFile(wheel) as archive:
        theirs = {name: hashlib.sha256(archive.read(name)).hexdigest() for name in archive.namelist() if _counts(name)}
    ours = {
        name: sha256(path)
        for path in (site_packages / "vllm").rglob("*.py")
        if _counts(name := path.relative_to(site_packages).as_posix())
    }
    return {
        "wheel": wheel.name,
        "sha256": sha256(wheel),
        "modules": len(theirs),
        "changed": sorted(name for name in theirs.keys() & ours.keys() if theirs[name] != ours[name]),
        "missing": sorted(theirs.keys() - ours.keys()),
        "added": sorted(ours.keys() - theirs.keys()),
    }


def _counts(name: str) -> bool:
    return name.startswith("vllm/") and name.endswith(".py")
