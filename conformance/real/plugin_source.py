"""The vLLM plugin, which travels with this package as data and is a distribution of its own."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

from conformance.real.client_wheel import digest_of

FOLDER = Path(__file__).with_name("plugin")
_PACKAGE = "weight_plane"


def _files() -> Iterator[tuple[str, Path]]:
    for path in [FOLDER / "pyproject.toml", *sorted((FOLDER / _PACKAGE).iterdir())]:
        if path.is_file():
            yield path.relative_to(FOLDER).as_posix(), path


def plugin_digest() -> str:
    """Hex digest of its files. Raises OSError."""
    return digest_of(_files())


def copy_plugin(folder: Path) -> Path:
    """Copies its files into ``folder``, which is emptied first: a build leaves files beside what it builds."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / _PACKAGE).mkdir(parents=True)
    for name, path in _files():
        shutil.copyfile(path, folder / name)
    return folder
