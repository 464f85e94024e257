"""Where the command's output cannot go, and how SIGTERM ends it."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.arrays import Array, safetensors_file
from tests.support.scripted_engine import ScriptedEngine
from vime_sync import cli, commands
from vime_sync.progress import ProgressBar
from vime_sync.pushing import push
from vime_sync.termination import Terminated, sigterm_interrupts

pytestmark = pytest.mark.unit

# A push that succeeded, whose output is the caller's to lose.
SCRIPT = """
import sys
from vime_sync import cli, commands
from vime_sync.report import PushReport
def push(source, engine, progress, **options):
    progress.note("waiting")
    progress.begin(8, 1)
    progress.end()
    return PushReport("http://e", "0.21.0", 1, True, 1, 8, 1, True, None)
commands.push = push
sys.exit(cli.main(sys.argv[1:]))
"""


@pytest.fixture
def checkpoint(tmp_path: Path) -> str:
    return str(safetensors_file(tmp_path / "model.safetensors", Array("w")))


def shell(command: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-c", SCRIPT, "push", *arguments]
    return subprocess.run(
        ["bash", "-c", command, "bash", *words], capture_output=True, timeout=60, text=True, check=False
    )


@pytest.mark.parametrize(
    "redirection",
    [">/dev/full", "2>/dev/full", ">/dev/full 2>&1", ">&-", "2>&-", ">&- 2>&-", "> >(exec true)"],
)
def test_a_push_that_succeeded_is_a_success_wherever_its_report_goes(checkpoint: str, redirection: str) -> None:
    found = shell(f'"$@" {redirection}', checkpoint, "--engine", "http://e")
    assert found.returncode == 0
    assert "Traceback" not in found.stderr
    assert "Exception ignored" not in found.stderr
    if redirection in (">/dev/full", ">&-"):
        told = "vime-sync: warning: the push is done, but its report cannot be written to standard output"
        assert found.stderr.splitlines()[-1] == told


def test_a_plan_that_nobody_can_read_is_none(checkpoint: str) -> None:
    found = shell('"$@" >/dev/full', checkpoint, "--dry-run")
    assert (found.returncode, found.stderr) == (
        1,
        "vime-sync: error: the output cannot be written to standard output\n",
    )


def test_an_error_keeps_its_status_when_nobody_can_be_told(tmp_path: Path) -> None:
    for redirection in ("2>&-", "2>/dev/full", ">&- 2>&-"):
        assert shell(f'"$@" {redirection}', str(tmp_path / "none"), "--dry-run", "--json").returncode == 3


def test_names_that_the_encoding_lacks_are_escaped(tmp_path: Path) -> None:
    path = str(safetensors_file(tmp_path / "x.safetensors", Array("gewicht-\N{SNOWMAN}-é")))
    words = [sys.executable, "-c", SCRIPT, "push", path, "--dry-run"]
    environment = {**os.environ, "PYTHONIOENCODING": "latin-1"}
    found = subprocess.run(words, env=environment, capture_output=True, timeout=60, check=True)
    assert b"from gewicht-\\u2603-\xe9\n" in found.stdout


def test_sigterm_closes_the_session_and_says_so(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, checkpoint: str
) -> None:
    engine = ScriptedEngine()

    class Ending(ProgressBar):
        def bucket(self, index: int) -> None:
            os.kill(os.getpid(), signal.SIGTERM)

    def pushing(source: Any, url: str, **options: Any) -> Any:
        return push(
            source, "http://127.0.0.1:8000", **{**options, "transport": engine, "progress": Ending(io.StringIO())}
        )

    monkeypatch.setattr(commands, "push", pushing)
    before = signal.getsignal(signal.SIGTERM)
    assert cli.main(["push", checkpoint, "--engine", "http://e"]) == 143
    assert signal.getsignal(signal.SIGTERM) is before
    assert engine.routes[-1] == "/finish_weight_update"
    err = capsys.readouterr().err
    assert err.startswith("vime-sync: error: terminated (SIGTERM); the engine is left paused, its session is closed")
    assert len(err.splitlines()) == 1


def test_sigterm_of_somebody_else_stays_theirs(monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _frame: heard.append(number))
    try:
        with sigterm_interrupts():
            os.kill(os.getpid(), signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert heard == [signal.SIGTERM]
    assert issubclass(Terminated, KeyboardInterrupt)
