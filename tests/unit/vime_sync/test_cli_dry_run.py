"""`--dry-run`: the plan, without a server or with one."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from tests.support.arrays import Array, safetensors_file
from tests.support.raw_server import RawServer, answer
from vime_sync import cli, exit_codes
from vime_sync.calls import Call
from vime_sync.report import PushReport

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


def test_a_dry_run_needs_no_server(capsys: pytest.CaptureFixture[str], checkpoint: str) -> None:
    code, out, err = run(capsys, "push", checkpoint, "--dry-run", "--bucket-bytes", "1KiB")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert "3 tensors" in lines[0]
    assert "3 buckets" in lines[0]
    assert "nothing was sent" in lines[0]
    assert lines[1].startswith("note: cannot be packed and travel by themselves: scalar (float32 [])")
    assert lines[2].startswith("bucket 1: packed, 1 tensor, 3.9 KiB, 1 broadcast, from w")
    assert lines[4].startswith("bucket 3: plain, 1 tensor,")


def test_a_dry_run_for_a_release_with_one_form_says_which_and_why(
    capsys: pytest.CaptureFixture[str], checkpoint: str
) -> None:
    _, out, _ = run(capsys, "push", checkpoint, "--dry-run", "--vllm-version", "0.28.0")
    assert "note: not packed: vLLM 0.28.0 cannot unpack scalar (float32 [])" in out
    assert "bucket 1: plain, 3 tensors" in out
    _, out, _ = run(capsys, "push", checkpoint, "--dry-run", "--vllm-version", "0.33.0", "--json")
    assert json.loads(out)["packed"] is True
    _, out, _ = run(capsys, "push", checkpoint, "--dry-run", "--vllm-version", "0.33.0")
    assert "not verified" in out


def test_a_dry_run_as_json(capsys: pytest.CaptureFixture[str], checkpoint: str) -> None:
    code, out, _ = run(capsys, "push", checkpoint, "--dry-run", "--json", "--no-packed")
    found = json.loads(out)
    assert code == 0
    assert (found["schema"], found["tensors"], found["bytes"]) == ("vime-sync/plan/1", 3, 4007)
    assert [(bucket["packed"], bucket["broadcast_bytes"]) for bucket in found["buckets"]] == [(False, [4, 4000, 3])]


def test_a_dry_run_with_an_engine_asks_whether_it_is_there(capsys: pytest.CaptureFixture[str], checkpoint: str) -> None:
    def version(sock: socket.socket, server: RawServer) -> None:
        while server.receive(sock):
            sock.sendall(answer(b'{"version":"0.22.1"}'))

    with RawServer(version) as server:
        code, out, _ = run(capsys, "push", checkpoint, "--dry-run", "--engine", server.url)
        assert code == 0
        assert f"for vLLM 0.22.1 ({server.url} answers)" in out
        assert [request.split(b" ")[1] for request in server.requests] == [b"/version"]
        arguments = ("push", checkpoint, "--dry-run", "--engine", server.url, "--vllm-version", "0.28.0")
        code, _, err = run(capsys, *arguments)
        assert code == exit_codes.REFUSED
        assert "0.22.1, which contradicts 0.28.0" in err
    code, _, err = run(capsys, "push", checkpoint, "--dry-run", "--engine", server.url)
    assert code == exit_codes.TRANSPORT
    assert err.startswith("vime-sync: error: ")


def test_many_buckets_are_cut(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = safetensors_file(tmp_path / "x.safetensors", *[Array(f"t{index}") for index in range(50)])
    _, out, _ = run(capsys, "push", str(path), "--dry-run", "--bucket-bytes", "1")
    assert "… and 30 more buckets" in out


def test_tensors_that_the_index_leaves_out_are_told(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    safetensors_file(tmp_path / "a.safetensors", Array("w"), Array("stray"))
    (tmp_path / "model.safetensors.index.json").write_text('{"weight_map": {"w": "a.safetensors"}}')
    _, out, err = run(capsys, "push", str(tmp_path), "--dry-run")
    assert "stray" in err
    assert "1 tensor, 8 B, 1 file, 1 bucket" in out
