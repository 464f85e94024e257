"""Versions for what a wheel leaves open, so that an installation of today is one of tomorrow.

``pins/torch-X.txt`` serves every release that needs torch X: an environment that worked, as ``pip freeze`` has it.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

FOLDER = Path(__file__).with_name("pins")


def pins_of(torch_release: str) -> list[str]:
    """The pins of a group, such as ``fastapi==0.165.0``; empty for a group that has none. Raises OSError."""
    path = FOLDER / f"torch-{torch_release}.txt"
    if not path.is_file():
        return []
    lines = (line.partition("#")[0].strip() for line in path.read_text().splitlines())
    return [line for line in lines if line]


def fitting(pins: Iterable[str], requirements: Iterable[str]) -> tuple[list[str], list[str]]:
    """The pins that no requirement of the wheel contradicts, and those that one does.

    The releases of a group differ in a few requirements; there the wheel is right, and pip chooses.
    """
    wanted = [Requirement(text) for text in requirements]
    kept: list[str] = []
    dropped: list[str] = []
    for pin in pins:
        pinned = Requirement(pin)
        (version,) = (spec.version for spec in pinned.specifier)
        same = [one for one in wanted if canonicalize_name(one.name) == canonicalize_name(pinned.name)]
        fits = all(one.specifier.contains(version, prereleases=True) for one in same)
        (kept if fits else dropped).append(pin)
    return kept, dropped
