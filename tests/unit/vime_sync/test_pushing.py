"""Whole pushes into a scripted engine: the order, and what is refused before it begins."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.arrays import Array, safetensors_file
from tests.support.scripted_engine import ScriptedEngine, as_json
from vime_sync.errors import (
    MissingFile,
    SettingError,
    SyncError,
    UnsupportedRelease,
    UnsupportedTensor,
)
from vime_sync.pushing import push
from vime_sync.report import PushReport
from vime_sync.timeouts import Timeouts
from vime_sync.transport import Response

pytestmark = pytest.mark.unit

ARRAYS = [
    Array("scalar", "float32", (), seed=1),
    Array("weight", "bfloat16", (4, 3), seed=2),
    Array("odd", "uint8", (7,), seed=3),
    Array("wide", "float32", (5,), seed=4),
]
WHOLE = ["/version", "/get_world_size", "/pause", "/reset_prefix_cache", "/init_weight_transfer_engine"]


def run(engine: ScriptedEngine, source: Any = None, **options: Any) -> PushReport:
    options.setdefault("timeouts", Timeouts(total=10.0, grace=0.5))
    return push(ARRAYS if source is None else source, "http://127.0.0.1:8000", transport=engine, **options)


def failing(route: str, answer: Response) -> ScriptedEngine:
    engine = ScriptedEngine()
    engine.handlers[route] = lambda _engine, _body: answer
    return engine


@pytest.mark.parametrize("world_size", [1, 3])
@pytest.mark.parametrize("packed", [True, False])
def test_the_order_of_a_round(packed: bool, world_size: int) -> None:
    engine = ScriptedEngine(world_size=world_size)
    report = run(engine, packed=packed)
    updates = ["/update_weights"] * report.buckets
    ending = ["/finish_weight_update", "/mock/weights", "/resume"]
    assert engine.routes == [*WHOLE, "/start_weight_update", *updates, *ending]
    assert report.verified is True
    assert (report.version, report.world_size, report.tensors, report.nbytes) == ("0.21.0", world_size, 4, 55)
    assert list(report.seconds) == [
        "version", "world size", "pause", "flush", "init", "start", "update", "finish", "verify", "resume"
    ]  # fmt: skip
    assert set(engine.held) == {"scalar", "weight", "odd", "wide"}
    pause = next(query for route, _, query in engine.calls if route == "/pause")
    assert pause == {"mode": "keep", "clear_cache": "true"}


def test_buckets_smaller_than_the_largest_tensor() -> None:
    engine = ScriptedEngine()
    report = run(engine, bucket_bytes=1, packed_buffer_bytes=1)
    assert (report.buckets, engine.routes.count("/update_weights"), report.verified) == (4, 4, True)


def test_a_path_is_opened_and_closed(tmp_path: Path) -> None:
    engine = ScriptedEngine()
    report = run(engine, safetensors_file(tmp_path / "model.safetensors", *ARRAYS))
    assert report.verified is True
    with pytest.raises(MissingFile):
        run(engine, tmp_path / "none")


def test_torch_tensors_by_name() -> None:
    torch = pytest.importorskip("torch")
    report = run(ScriptedEngine(), {"a": torch.ones(2, 2).t(), "b": torch.ones(3, dtype=torch.bfloat16)})
    assert (report.tensors, report.nbytes, report.verified) == (2, 22, True)


def test_a_real_server_is_sent_to_and_never_called_verified() -> None:
    engine = ScriptedEngine(mock=False)
    report = run(engine)
    assert "/mock/weights" not in engine.routes
    assert report.verified is None
    assert report.reason == "sent, not verifiable here: the server does not show what it holds"
    assert report.as_json()["verified"] is None


def test_verification_and_resuming_can_be_switched_off() -> None:
    engine = ScriptedEngine()
    report = run(engine, verify=False, resume=False, pause_mode="abort")
    assert (report.verified, report.reason) == (None, "sent, not verified: verification is switched off")
    assert engine.routes[-1] == "/finish_weight_update"


@pytest.mark.parametrize(
    ("source", "options", "kind"),
    [
        ([], {}, SettingError),
        ([Array("flag", "bool", ())], {}, UnsupportedTensor),
        ([Array("w"), Array("w")], {}, SettingError),
        (None, {"bucket_bytes": 0}, SettingError),
        (None, {"master_address": "0.0.0.0"}, SettingError),
        (None, {"bind_address": "198.51.100.1"}, SettingError),
        (None, {"master_port": 99999}, SettingError),
        (None, {"pause_mode": "never"}, SettingError),
        (None, {"pause_mode": ["keep"]}, SettingError),
        (None, {"vllm_version": "old"}, SettingError),
        (None, {"vllm_version": "0.28.0"}, UnsupportedRelease),
    ],
)
def test_what_cannot_work_is_refused_before_anything_is_changed(
    source: Any, options: dict[str, Any], kind: type[SyncError]
) -> None:
    engine = ScriptedEngine()
    with pytest.raises(kind):
        run(engine, source, **options)
    assert set(engine.routes) <= {"/version", "/get_world_size"}


@pytest.mark.parametrize("version", ["0.20.0", "main"])
def test_releases_that_cannot_be_sent_to_are_refused_before_anything_is_changed(version: str) -> None:
    engine = ScriptedEngine(version=version)
    with pytest.raises(UnsupportedRelease) as caught:
        run(engine)
    assert set(engine.routes) <= {"/version", "/get_world_size"}
    assert caught.value.state == "nothing was changed on the engine"


def test_newer_releases_are_sent_to_plain_and_unknown_ones_with_a_warning() -> None:
    assert run(engine_of("0.28.0"), packed=False).warnings == ()
    report = run(engine_of("0.99.0"), packed=False)
    assert "0.99.0 is newer" in report.warnings[0]


def engine_of(version: str) -> ScriptedEngine:
    engine = ScriptedEngine(version=version)
    engine.handlers["/reset_prefix_cache"] = lambda _engine, _body: as_json({"success": True})
    return engine


def test_a_release_may_be_assumed_and_the_stated_one_is_reported() -> None:
    engine = ScriptedEngine(version="0.1.dev7+gabc")
    assert run(engine, vllm_version="0.21.0").version == "0.1.dev7+gabc"


def test_a_cache_that_was_not_emptied_is_a_warning() -> None:
    engine = engine_of("0.26.0")
    engine.handlers["/reset_prefix_cache"] = lambda _engine, _body: as_json({"success": False})
    assert "not emptied" in run(engine).warnings[0]
