"""Pushes into scripted engines of the releases that differ: what is announced where, and what a failure leaves."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.arrays import Array
from tests.support.scripted_engine import ScriptedEngine, as_json, closed, refusal
from vime_sync.calls import Call
from vime_sync.errors import (
    ConnectionClosed,
    EngineError,
    SettingError,
    SyncError,
    UnsupportedRelease,
    UnsupportedTensor,
    WeightVersionMismatch,
)
from vime_sync.pushing import push
from vime_sync.report import PushReport
from vime_sync.timeouts import Timeouts

pytestmark = pytest.mark.unit

ORDINARY = [Array("weight", "bfloat16", (4, 3), seed=2), Array("odd", "uint8", (7,), seed=3), Array("wide", shape=(5,))]
SCALAR = Array("scalar", "float32", (), seed=1)
MASK = Array("mask", "bool", (3,), content=b"\1\0\1")
LISTS = {"names", "dtype_names", "shapes"}
PLACE = {"master_address", "master_port", "rank_offset", "world_size"}


def run(engine: ScriptedEngine, source: Any = None, **options: Any) -> PushReport:
    options.setdefault("timeouts", Timeouts(total=10.0, grace=0.5))
    return push(ORDINARY if source is None else source, "http://127.0.0.1:8000", transport=engine, **options)


def bodies(engine: ScriptedEngine, route: str, key: str) -> list[dict[str, Any]]:
    return [body[key] for called, body, _ in engine.calls if called == route]


@pytest.mark.parametrize("version", ["0.21.0", "0.27.0", "0.27.1", "0.28.0", "0.31.0", "0.32.0", "0.33.0"])
@pytest.mark.parametrize("packed", [True, False])
def test_packing_is_announced_in_the_place_of_the_release(version: str, packed: bool) -> None:
    engine = ScriptedEngine(version=version)
    report = run(engine, packed=packed, packed_buffer_bytes=20, bucket_bytes=30)
    assert (report.verified, report.packed, report.form_reason) == (True, packed, None)
    (init,) = bodies(engine, "/init_weight_transfer_engine", "init_info")
    updates = bodies(engine, "/update_weights", "update_info")
    assert len(updates) == 2
    said = {"packed": True, "packed_buffer_size_bytes": 20} if packed else {}
    by_init = version >= "0.28"
    assert {key: value for key, value in init.items() if key not in PLACE} == (said if by_init else {})
    for update in updates:
        assert {key: value for key, value in update.items() if key not in LISTS} == ({} if by_init else said)


@pytest.mark.parametrize(("version", "packed"), [("0.28.0", False), ("0.31.0", False), ("0.32.0", True)])
def test_from_0_28_on_a_scalar_decides_the_form_of_the_round(version: str, packed: bool) -> None:
    engine = ScriptedEngine(version=version)
    report = run(engine, [SCALAR, *ORDINARY])
    assert (report.verified, report.packed, report.buckets) == (True, packed, 1)
    assert ("scalar" in (report.form_reason or "")) is not packed


def test_up_to_0_27_a_scalar_travels_by_itself_in_a_packed_round() -> None:
    engine = ScriptedEngine(version="0.27.1")
    report = run(engine, [SCALAR, *ORDINARY])
    assert (report.verified, report.packed, report.buckets) == (True, True, 2)
    assert ["packed" in update for update in bodies(engine, "/update_weights", "update_info")] == [True, False]
    assert "scalar" in (report.form_reason or "")


@pytest.mark.parametrize("version", ["0.28.0", "0.31.0"])
@pytest.mark.parametrize(
    ("source", "packed", "name"),
    [([SCALAR, *ORDINARY], True, "scalar"), ([MASK, *ORDINARY], False, "mask"), ([SCALAR, MASK], None, "scalar")],
)
def test_what_the_form_cannot_carry_is_refused_before_anything_is_changed(
    version: str, source: list[Array], packed: bool | None, name: str
) -> None:
    engine = ScriptedEngine(version=version)
    with pytest.raises(UnsupportedTensor, match=name) as caught:
        run(engine, source, packed=packed)
    assert set(engine.routes) <= {"/version", "/get_world_size"}
    assert caught.value.state == "nothing was changed on the engine"


@pytest.mark.parametrize("version", ["0.27.0", "0.28.0", "0.31.0", "0.32.0"])
def test_a_weight_version_is_set_and_read_back(version: str) -> None:
    engine = ScriptedEngine(version=version)
    assert run(engine, weight_version="step-7").weight_version == "step-7"
    assert engine.weight_version == "step-7"
    assert engine.routes[-3:] == ["/mock/weights", "/weight_info", "/resume"]
    report = run(engine)
    assert report.weight_version is None
    assert engine.weight_version == "step-7"


@pytest.mark.parametrize(
    ("version", "name", "kind"), [("0.26.0", "7", UnsupportedRelease), ("0.32.0", "", SettingError)]
)
def test_a_weight_version_that_cannot_be_set_is_refused_before_anything_is_changed(
    version: str, name: str, kind: type[SyncError]
) -> None:
    engine = ScriptedEngine(version=version)
    with pytest.raises(kind):
        run(engine, weight_version=name)
    assert set(engine.routes) <= {"/version", "/get_world_size"}


def test_a_weight_version_that_was_not_set_is_an_error_and_nothing_is_resumed() -> None:
    # What a proxy that drops the content type makes of the finish: 200, and the old name.
    engine = ScriptedEngine(version="0.32.0")
    engine.handlers["/finish_weight_update"] = lambda engine, _body: engine.well("/finish_weight_update", {})
    with pytest.raises(WeightVersionMismatch, match="'default', not 'step-7'") as caught:
        run(engine, weight_version="step-7")
    assert (caught.value.sent, caught.value.found) == ("step-7", "default")
    assert "/update_weight_version" in (caught.value.next_step or "")
    assert "/resume" not in engine.routes


@pytest.mark.parametrize("version", ["0.27.0", "0.28.0", "0.31.0", "0.32.0"])
def test_a_cache_that_was_not_emptied_is_a_warning(version: str) -> None:
    engine = ScriptedEngine(version=version)
    engine.handlers["/reset_prefix_cache"] = lambda _engine, _body: as_json({"success": False})
    assert run(engine).warnings == ("the engine says that its prefix cache was not emptied",)


def failing_once(engine: ScriptedEngine) -> None:
    def refuse(engine: ScriptedEngine, body: dict[str, Any]) -> Any:
        del engine.handlers["/update_weights"]
        engine.receive(body["update_info"])
        return refusal("shape mismatch")

    engine.handlers["/update_weights"] = refuse


@pytest.mark.parametrize(
    ("version", "clean_up"),
    [
        ("0.21.0", ["/finish_weight_update"]),
        ("0.22.1", ["/finish_weight_update"]),
        ("0.27.0", ["/start_weight_update", "/finish_weight_update"]),
        ("0.28.0", ["/start_weight_update", "/finish_weight_update"]),
        ("0.31.0", ["/start_weight_update", "/finish_weight_update"]),
        ("0.32.0", ["/start_weight_update", "/finish_weight_update"]),
    ],
)
def test_after_a_failed_update_the_first_error_is_seen_and_the_next_push_is_whole(
    version: str, clean_up: list[str]
) -> None:
    engine = ScriptedEngine(version=version)
    failing_once(engine)
    with pytest.raises(EngineError, match="shape mismatch") as caught:
        run(engine)
    assert not hasattr(caught.value, "__notes__")
    assert engine.routes[engine.routes.index("/update_weights") + 1 :] == clean_up
    assert "push again" in (caught.value.next_step or "")
    assert run(engine).verified is True
    assert engine.spoilt is False


@pytest.mark.parametrize(
    ("version", "advice"),
    [
        ("0.21.0", "POST /finish_weight_update (an error"),
        ("0.22.1", "POST /finish_weight_update (an error"),
        ("0.23.0", "POST /start_weight_update and /finish_weight_update (an error"),
        ("0.32.0", "POST /start_weight_update and /finish_weight_update (an error"),
    ],
)
@pytest.mark.parametrize("failing", ["update", "clean-up"])
def test_where_the_session_is_not_known_the_advice_is_the_release_s(version: str, advice: str, failing: str) -> None:
    engine = ScriptedEngine(version=version)

    def lost(_engine: ScriptedEngine, _body: object) -> Any:
        raise closed(Call("/update_weights", "http://engine", "update", 0))

    if failing == "update":
        engine.handlers["/update_weights"] = lost
    else:
        failing_once(engine)
        engine.handlers["/finish_weight_update"] = lost
    with pytest.raises((ConnectionClosed, EngineError)) as caught:
        run(engine)
    assert advice in (caught.value.next_step or "")
    assert "\n" not in caught.value.line()
