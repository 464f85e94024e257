"""What guards and lists environments: the disk, the lock, removal. With a pip that installs nothing."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from conformance.real import Options, environments, install, installed, remove
from conformance.real.cli import main
from conformance.real.environment import Environment
from conformance.real.errors import BusyError, NotInstalledError, SpaceError
from conformance.real.lock import locked
from tests.support.fake_install import VERSION, calls, fake_python

pytestmark = pytest.mark.integration


@pytest.fixture
def python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return fake_python(tmp_path, monkeypatch)


def test_the_disk_is_looked_at_first(python: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: SimpleNamespace(free=1_500_000_000))
    with pytest.raises(SpaceError, match=r"has 1\.5 GB free, .* are needed; .*CONFORMANCE_REAL_HOME") as seen:
        install(VERSION, Options(python=python))
    assert seen.value.free == 1_500_000_000
    assert calls(tmp_path) == []
    assert not (tmp_path / "home" / VERSION).exists()


def test_one_process_at_a_time(python: Path, tmp_path: Path) -> None:
    said: list[str] = []
    with locked(tmp_path / "home", VERSION, 1.0):
        with pytest.raises(BusyError, match=rf"vLLM {VERSION} is being installed or removed by process {os.getpid()}"):
            install(VERSION, Options(python=python, lock_deadline=0.1))
        (tmp_path / "home" / VERSION).mkdir()
        with pytest.raises(BusyError):
            remove(VERSION, deadline=0.1)
        with pytest.raises(BusyError), locked(tmp_path / "home", VERSION, 0.1, said.append):
            pytest.fail("the lock was free")
    assert said == [str(os.getpid())]
    install(VERSION, Options(python=python, lock_deadline=0.1))


def test_remove(python: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    install(VERSION, Options(python=python))
    other = Environment("1.0.0", tmp_path / "home" / "1.0.0")
    other.venv.mkdir(parents=True)
    assert main(["remove", VERSION]) == 0
    assert f"removed vLLM {VERSION}, " in capsys.readouterr().out
    assert installed(VERSION) is None
    assert [one.version for one in environments()] == ["1.0.0"]
    with pytest.raises(NotInstalledError):
        remove(VERSION)
    assert main(["list"]) == 0
    assert "1.0.0    unfinished" in capsys.readouterr().out


def test_list_when_there_is_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CONFORMANCE_REAL_HOME", str(tmp_path / "none"))
    assert main(["list"]) == 0
    assert capsys.readouterr().out == f"nothing is installed in {tmp_path}/none\n"
