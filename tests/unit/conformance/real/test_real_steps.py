"""Stamps of finished steps, and what a killed pip leaves."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.real.half_installed import sweep
from conformance.real.steps import Facts, Silent, Steps

pytestmark = pytest.mark.unit


class Run:
    """One installation of two steps; ``did`` lists what was really done."""

    def __init__(self, folder: Path, first: Facts, second: Facts, failing: str = "") -> None:
        self.did: list[str] = []
        self.steps = Steps(folder, 2, Silent(), lambda name: self.did.append(f"change from {name}"))

        def action(name: str) -> Facts:
            self.did.append(name)
            if name == failing:
                raise KeyboardInterrupt
            return {"made": name, **(first if name == "first" else second)}

        self.facts = [
            self.steps.do("first", "the first", first, lambda: action("first")),
            self.steps.do("second", "the second", second, lambda: action("second")),
        ]


def test_what_is_done_is_not_done_again_and_its_facts_are_kept(tmp_path: Path) -> None:
    once = Run(tmp_path, {"a": 1}, {"b": 1})
    assert once.did == ["change from first", "first", "second"]
    again = Run(tmp_path, {"a": 1}, {"b": 1})
    assert again.did == []
    assert not again.steps.stale
    assert again.facts == once.facts == [{"made": "first", "a": 1}, {"made": "second", "b": 1}]
    assert again.steps.key("first") == {"a": 1}
    assert again.steps.facts("third") is None


def test_another_key_does_its_step_again_and_all_that_follow(tmp_path: Path) -> None:
    Run(tmp_path, {"a": 1}, {"b": 1})
    assert Run(tmp_path, {"a": 1}, {"b": 2}).did == ["change from second", "second"]
    assert Run(tmp_path, {"a": 2}, {"b": 2}).did == ["change from first", "first", "second"]


def test_an_interrupted_step_is_done_again(tmp_path: Path) -> None:
    Run(tmp_path, {}, {"b": 1})
    with pytest.raises(KeyboardInterrupt):
        Run(tmp_path, {}, {"b": 2}, failing="second")
    # The stamp of the earlier success must not count: what it speaks of was overwritten halfway.
    assert Run(tmp_path, {}, {"b": 1}).did == ["change from second", "second"]


def test_a_stamp_that_cannot_be_read_counts_for_nothing(tmp_path: Path) -> None:
    Run(tmp_path, {}, {})
    for text in ("", "[]", '{"key": {}}'):
        (tmp_path / "second.json").write_text(text)
        assert Run(tmp_path, {}, {}).did == ["change from second", "second"]


def test_half_installed_packages_are_swept(tmp_path: Path) -> None:
    site_packages = tmp_path / "lib" / "python3.11" / "site-packages"
    for name in ("whole-1.dist-info", "half-1.dist-info", "~moved", "package"):
        (site_packages / name).mkdir(parents=True)
        (site_packages / name / "METADATA").write_text("x")
    (site_packages / "whole-1.dist-info" / "RECORD").write_text("x")
    (site_packages / "~file.so").write_text("x")
    assert sweep(tmp_path) == ["half-1.dist-info"]
    assert sorted(path.name for path in site_packages.iterdir()) == ["package", "whole-1.dist-info"]
    assert sweep(tmp_path / "nothing") == []
