"""The command line: arguments, output, exit status."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.arrays import Array, raw_file, safetensors_file
from vime_sync import cli, commands, exit_codes
from vime_sync.calls import Call
from vime_sync.errors import (
    CallTimeout,
    DigestMismatch,
    EngineError,
    MissingFile,
    NeverJoined,
    SettingError,
    UnsupportedRelease,
    WeightVersionMismatch,
)
from vime_sync.report import PushReport
from vime_sync.termination import Terminated

pytestmark = pytest.mark.unit

CALL = Call("/x", "http://e", "x")
REPORT = PushReport("http://e", "0.21.0", 1, True, 2, 1 << 20, 3, True, None, {"update": 0.5}, ("mind the gap",))


@pytest.fixture
def checkpoint(tmp_path: Path) -> str:
    arrays = (Array("scalar", shape=()), Array("w", shape=(1000,)), Array("odd", "uint8", (3,)))
    return str(safetensors_file(tmp_path / "model.safetensors", *arrays))


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = cli.main(arguments)
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["push", "{checkpoint}"], 2, "--engine"),
        (["push", "{checkpoint}", "--engine", "nowhere"], 2, "engine URL"),
        (["push", "{checkpoint}", "--engine", "http://u:s3cret@127.0.0.1:1/?q"], 2, "query"),
        (["push", "{checkpoint}", "--engine", "http://127.0.0.1:1", "--timeout", "-1"], 2, "timeout"),
        (["push", "{checkpoint}", "--engine", "http://127.0.0.1:1", "--timeout", "nan"], 2, "timeout"),
        (["push", "{checkpoint}", "--engine", "http://u:s3cret@127.0.0.1:1"], 4, "cannot connect"),
        (["push", "{checkpoint}", "--engine", "http://name.invalid:1"], 4, "cannot connect"),
        (["push", "{checkpoint}", "--engine", "http://192.0.2.99:1", "--master-address", "::1"], 2, "master address"),
        (["push", "{checkpoint}", "--engine", "http://127.0.0.1:1", "--vllm-version", "old"], 2, "vLLM version: 'old'"),
        (["push", "{checkpoint}", "--dry-run", "--vllm-version", "old"], 2, "vLLM version: 'old'"),
        (
            ["push", "{checkpoint}", "--engine", "http://127.0.0.1:1", "--master-address", "nosuch.invalid"],
            2,
            "'nosuch.invalid' (--master-address)",
        ),
        (["push", "{checkpoint}x", "--dry-run"], 3, "no such file"),
        (["push", "{checkpoint}", "--dry-run", "--vllm-version", "0.20.0"], 5, "older"),
        (["push", "{checkpoint}", "--dry-run", "--vllm-version", "0.28.0", "--packed"], 3, "--no-packed"),
        (["push", "{checkpoint}", "--dry-run", "--vllm-version", "0.26.0", "--weight-version", "7"], 5, "0.27.0"),
        (["push", "{checkpoint}", "--dry-run", "--vllm-version", "0.27.0", "--weight-version", ""], 2, "empty"),
        (["status", "--engine", "http://127.0.0.1:1"], 4, "cannot connect"),
    ],
)
def test_an_error_is_one_line_and_a_status(
    capsys: pytest.CaptureFixture[str], checkpoint: str, arguments: list[str], code: int, text: str
) -> None:
    found, out, err = run(capsys, *[argument.format(checkpoint=checkpoint) for argument in arguments])
    assert (found, out) == (code, "")
    assert len(err.splitlines()) == 1
    assert text in err
    assert "s3cret" not in err
    assert "Traceback" not in err


def test_a_broken_checkpoint(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = raw_file(tmp_path / "x.safetensors", b"{")
    code, _, err = run(capsys, "push", str(path), "--dry-run")
    assert code == exit_codes.CHECKPOINT
    assert str(path) in err
    assert "next: " in err


def test_an_error_as_json(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, out, _ = run(capsys, "push", str(tmp_path / "none"), "--dry-run", "--json")
    found = json.loads(out)
    assert (found["schema"], found["error"], found["exit_code"]) == ("vime-sync/error/1", "MissingFile", code)


def test_a_bad_environment_variable(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, checkpoint: str
) -> None:
    monkeypatch.setenv("SLIME_VLLM_WEIGHT_TRANSFER_HTTP_TIMEOUT_SEC", "soon")
    code, _, err = run(capsys, "push", checkpoint, "--engine", "http://127.0.0.1:1")
    assert code == exit_codes.USAGE
    assert "SLIME_VLLM_WEIGHT_TRANSFER_HTTP_TIMEOUT_SEC" in err


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["push"],
        ["push", "x", "--bucket-bytes", "many"],
        ["push", "x", "--pause-mode", "never"],
        ["status"],
        ["pull"],
    ],
)
def test_bad_usage(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        cli.main(arguments)
    assert caught.value.code == exit_codes.USAGE
    assert "usage: vime-sync" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["--help"], ["push", "--help"], ["status", "--help"]])
def test_help_documents_the_exit_status(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        cli.main(arguments)
    assert caught.value.code == 0
    out = capsys.readouterr().out
    for code in (0, 1, 2, 3, 4, 5, 6, 7, 130, 143):
        assert f"\n  {code} " in out


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (SettingError("x", "y"), 2),
        (MissingFile("f", "m"), 3),
        (CallTimeout(CALL, "late", seconds=1), 4),
        (EngineError(CALL, "no", status=500), 5),
        (UnsupportedRelease("0", "m"), 5),
        (NeverJoined("m", joined=[], missing=[1]), 6),
        (DigestMismatch({0: {"w": "missing"}}), 7),
        (WeightVersionMismatch("a", "b"), 7),
        (ZeroDivisionError("x"), 1),
        (KeyboardInterrupt(), 130),
        (Terminated(), 143),
    ],
)
def test_every_kind_of_error_has_its_status(error: BaseException, code: int) -> None:
    assert exit_codes.exit_code(error) == code


def pushing(monkeypatch: pytest.MonkeyPatch, outcome: PushReport | BaseException) -> dict[str, Any]:
    seen: dict[str, Any] = {}

    def fake(_source: object, engine: str, **options: Any) -> PushReport:
        seen.update(options, engine=engine)
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    monkeypatch.setattr(commands, "push", fake)
    return seen


def test_options_reach_the_push(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, checkpoint: str
) -> None:
    seen = pushing(monkeypatch, REPORT)
    arguments = (
        "--engine http://e --no-packed --bucket-bytes 1MiB --packed-buffer-bytes 2k --master-address a --master-port 5 "
        "--bind-address b --timeout 7 --pause-mode wait --no-verify --no-resume --vllm-version 0.22.0 "
        "--weight-version step-7"
    )
    assert run(capsys, "push", checkpoint, *arguments.split())[0] == 0
    assert seen.pop("timeouts").total == 7.0
    seen.pop("progress")
    assert seen == {
        "engine": "http://e",
        "packed": False,
        "bucket_bytes": 1 << 20,
        "packed_buffer_bytes": 2048,
        "master_address": "a",
        "master_port": 5,
        "bind_address": "b",
        "pause_mode": "wait",
        "verify": False,
        "resume": False,
        "vllm_version": "0.22.0",
        "weight_version": "step-7",
    }


@pytest.mark.parametrize(("flags", "packed"), [((), None), (("--packed",), True), (("--no-packed",), False)])
def test_the_form_is_left_open_unless_it_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, checkpoint: str, flags: tuple[str, ...], packed: bool | None
) -> None:
    seen = pushing(monkeypatch, REPORT)
    assert cli.main(["push", checkpoint, "--engine", "http://e", "--quiet", *flags]) == 0
    assert seen["packed"] is packed


def test_success_for_people_for_scripts_and_for_nobody(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, checkpoint: str
) -> None:
    pushing(monkeypatch, REPORT)
    code, out, _ = run(capsys, "push", checkpoint, "--engine", "http://e")
    assert code == 0
    assert out.splitlines()[0] == "warning: mind the gap"
    assert "2 tensors, 1.0 MiB, in 3 buckets (packed) to http://e (vLLM 0.21.0, 1 worker)" in out
    assert out.splitlines()[-1] == "digests verified: every rank holds what was sent"
    code, out, _ = run(capsys, "push", checkpoint, "--engine", "http://e", "--json")
    assert json.loads(out) == REPORT.as_json()
    assert run(capsys, "push", checkpoint, "--engine", "http://e", "--quiet") == (0, "", "")


def test_one_is_singular_and_the_report_says_why_and_under_which_name(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, checkpoint: str
) -> None:
    report = replace(REPORT, packed=False, tensors=1, buckets=1, world_size=2, form_reason="why", weight_version="7")
    pushing(monkeypatch, report)
    _, out, _ = run(capsys, "push", checkpoint, "--engine", "http://e")
    assert "pushed 1 tensor, 1.0 MiB, in 1 bucket (plain) to http://e (vLLM 0.21.0, 2 workers)" in out
    assert "note: why\n" in out
    assert "the engine calls these weights 7\n" in out
    _, out, _ = run(capsys, "push", checkpoint, "--engine", "http://e", "--json")
    found = json.loads(out)
    assert (found["packed"], found["form_reason"], found["weight_version"]) == (False, "why", "7")


def test_an_interruption_is_clean(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, checkpoint: str
) -> None:
    interruption = KeyboardInterrupt()
    interruption.add_note("the engine is left paused")
    pushing(monkeypatch, interruption)
    code, _, err = run(capsys, "push", checkpoint, "--engine", "http://e")
    assert (code, err) == (130, "vime-sync: error: interrupted; the engine is left paused\n")


def test_an_unexpected_error_is_one_line_too(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, checkpoint: str
) -> None:
    pushing(monkeypatch, RuntimeError("see http://u:s3cret@h/\nthere"))
    code, _, err = run(capsys, "push", checkpoint, "--engine", "http://e")
    assert code == 1
    assert err == "vime-sync: error: unexpected RuntimeError: see http://h/ there (--traceback shows where)\n"
    _, _, err = run(capsys, "push", checkpoint, "--engine", "http://e", "--traceback")
    assert "Traceback" in err
