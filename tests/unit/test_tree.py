"""The shape of the tree, which no linter checks."""

from __future__ import annotations

from pathlib import Path

import pytest

pytestmark = pytest.mark.unit

PROJECT = Path(__file__).parents[2]
PACKAGES = ("mock_vllm", "conformance", "vime_sync")
LONGEST_MODULE = 250


def modules() -> list[Path]:
    """Return every Python file of the packages and the tests."""
    return [file for folder in (*PACKAGES, "tests", "scripts") for file in sorted((PROJECT / folder).rglob("*.py"))]


def test_no_module_is_long() -> None:
    lengths = {str(file.relative_to(PROJECT)): len(file.read_text().splitlines()) for file in modules()}
    assert {name: length for name, length in lengths.items() if length > LONGEST_MODULE} == {}


def test_every_module_says_what_it_holds() -> None:
    silent = [str(file.relative_to(PROJECT)) for file in modules() if not file.read_text().startswith(('"""', 'r"""'))]
    assert silent == []


def test_every_folder_of_a_package_is_a_package() -> None:
    folders = {file.parent for package in PACKAGES for file in (PROJECT / package).rglob("*.py")}
    assert [str(folder) for folder in sorted(folders) if not (folder / "__init__.py").exists()] == []


def test_the_packages_are_typed() -> None:
    assert all((PROJECT / package / "py.typed").exists() for package in PACKAGES)


def test_the_mock_never_mentions_torch_as_a_module() -> None:
    for file in sorted((PROJECT / "mock_vllm").rglob("*.py")):
        lines = [line.strip() for line in file.read_text().splitlines()]
        assert not [line for line in lines if line.startswith(("import torch", "from torch"))], file
