"""An installed copy of this project carries all that it needs to build a managed environment."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

PROJECT = Path(__file__).parents[2]
PLUGIN = PROJECT / "conformance" / "real" / "plugin"


def build(project: Path, folder: Path) -> zipfile.ZipFile:
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "--quiet", "--no-deps"]
    subprocess.run([*pip, "--wheel-dir", str(folder), str(project)], check=True, timeout=250, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    return zipfile.ZipFile(wheel)


def test_the_plugin_travels_as_data_and_is_a_distribution_of_its_own(tmp_path: Path) -> None:
    with build(PROJECT, tmp_path / "project") as wheel:
        names = wheel.namelist()
        (top_level,) = (name for name in names if name.endswith("top_level.txt"))
        assert wheel.read(top_level).decode().split() == ["conformance", "mock_vllm", "vime_sync"]
        wheel.extractall(tmp_path / "installed")
    carried = tmp_path / "installed" / "conformance" / "real"
    modules = {path.relative_to(PLUGIN) for path in PLUGIN.rglob("*.py")}
    assert {path.relative_to(carried / "plugin") for path in (carried / "plugin").rglob("*.py")} == modules
    assert sorted(path.name for path in (carried / "pins").iterdir()) == ["torch-2.11.0.txt", "torch-2.13.0.txt"]
    copy = "import pathlib, sys, conformance.real.plugin_source as p; p.copy_plugin(pathlib.Path(sys.argv[1]))"
    subprocess.run(
        [sys.executable, "-c", copy, str(tmp_path / "plugin")], check=True, cwd=tmp_path / "installed", timeout=60
    )
    with build(tmp_path / "plugin", tmp_path / "plugin-wheel") as plugin:
        (points,) = (name for name in plugin.namelist() if name.endswith("entry_points.txt"))
        assert plugin.read(points).decode().split("\n")[:2] == [
            "[vllm.general_plugins]",
            "weight_plane = weight_plane.register:register",
        ]
        assert {name.partition("/")[2] for name in plugin.namelist() if name.startswith("weight_plane/")} >= {
            "py.typed",
            "register.py",
        }
