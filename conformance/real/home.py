"""Where the private environments lie, and what a release's name looks like."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from conformance.real.errors import BadVersionError

HOME_VARIABLE = "CONFORMANCE_REAL_HOME"
_RELEASE = re.compile(r"\d{1,4}\.\d{1,4}\.\d{1,4}", re.ASCII)


def home(environ: Mapping[str, str] = os.environ) -> Path:
    """The folder of all environments: ``CONFORMANCE_REAL_HOME``, else one in the user's cache folder. Not made here."""
    chosen = environ.get(HOME_VARIABLE)
    if chosen:
        return Path(chosen).expanduser().absolute()
    # The specification of XDG_CACHE_HOME says to ignore a path that is not absolute.
    cache = Path(environ.get("XDG_CACHE_HOME", ""))
    base = cache if cache.is_absolute() else Path("~/.cache").expanduser()
    return base / "vllm-weight-sync-conformance" / "real"


def release(text: str) -> str:
    """``text`` when it is a release such as ``0.21.0``; ``v0.21.0`` is understood. Raises BadVersionError."""
    bare = text.removeprefix("v")
    if not _RELEASE.fullmatch(bare):
        raise BadVersionError(text)
    return ".".join(str(int(number)) for number in bare.split("."))


def numbers(version: str) -> tuple[int, int, int]:
    """A release as three numbers, to compare. Raises BadVersionError."""
    major, minor, patch = release(version).split(".")
    return int(major), int(minor), int(patch)
