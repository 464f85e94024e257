"""The package's public face."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import vime_sync

pytestmark = pytest.mark.unit


def test_all_lists_the_public_names_sorted() -> None:
    public = {
        name
        for name, value in vars(vime_sync).items()
        if not name.startswith("_") and not (hasattr(value, "__spec__") and hasattr(value, "__loader__"))
    }
    assert list(vime_sync.__all__) == sorted(vime_sync.__all__)
    assert set(vime_sync.__all__) == public | {"__version__"}


def test_the_version_is_the_metadata_s() -> None:
    text = (Path(vime_sync.__file__).parents[1] / "pyproject.toml").read_text()
    assert f'version = "{vime_sync.__version__}"' in text


def test_importing_needs_no_torch_numpy_or_safetensors() -> None:
    code = """
import sys
for name in ("torch", "numpy", "safetensors", "mock_vllm", "conformance", "fastapi"):
    sys.modules[name] = None
import vime_sync, vime_sync.cli
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


def test_every_error_of_the_tree_is_exported_or_named_in_its_drawing() -> None:
    from vime_sync import errors

    classes = [value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, Exception)]
    assert len(classes) > 20
    for found in classes:
        assert issubclass(found, errors.SyncError)
        assert found.__name__ in (errors.__doc__ or "")
        assert found.__name__ in vime_sync.__all__
