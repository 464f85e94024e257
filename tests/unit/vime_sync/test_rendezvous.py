"""The engine's call and the accept, side by side."""

from __future__ import annotations

import threading
import time

import pytest

from tests.support.scripted_engine import ScriptedEngine, as_json, closed, refusal
from vime_sync import rendezvous
from vime_sync.calls import Call
from vime_sync.engine import EngineClient
from vime_sync.errors import CallTimeout, ConnectionClosed, EngineError, NeverJoined, SyncError
from vime_sync.rendezvous import form_group
from vime_sync.tcp_plane_listener import TcpPlaneListener
from vime_sync.tcp_plane_sender import TcpPlaneSender
from vime_sync.timeouts import Timeouts
from vime_sync.transport import Response

pytestmark = pytest.mark.unit

INIT = "/init_weight_transfer_engine"


def form(engine: ScriptedEngine, total: float = 20.0, packing: dict[str, object] | None = None) -> TcpPlaneSender:
    listener = TcpPlaneListener(engine.world_size + 1, "127.0.0.1")
    client = EngineClient("http://unused", Timeouts(total=total, grace=0.5), engine)
    return form_group(client, listener, "192.0.2.9", packing=packing)


def test_the_engine_is_told_where_to_meet() -> None:
    engine = ScriptedEngine(world_size=2)
    form(engine).close()
    ((route, body, _),) = engine.calls
    assert route == INIT
    port = body["init_info"].pop("master_port")
    assert 0 < port < 65536
    assert body == {"init_info": {"master_address": "192.0.2.9", "rank_offset": 1, "world_size": 3}}
    engine.leave()


def test_the_engine_is_told_of_packing() -> None:
    engine = ScriptedEngine(version="0.28.0")
    form(engine, packing={"packed": True, "packed_buffer_size_bytes": 5}).close()
    info = engine.calls[0][1]["init_info"]
    assert (info["packed"], info["packed_buffer_size_bytes"], info["world_size"]) == (True, 5, 2)
    engine.leave()


def test_a_refusal_ends_the_accept_at_once() -> None:
    engine = ScriptedEngine()

    def refusing(_engine: ScriptedEngine, _body: object) -> Response:
        time.sleep(0.2)  # the accept is to be waiting by then
        return refusal("no weights today")

    engine.handlers[INIT] = refusing
    began = time.monotonic()
    with pytest.raises(EngineError, match="no weights today"):
        form(engine)
    assert time.monotonic() - began < 5.0


def test_a_success_that_nobody_joined_for_is_none() -> None:
    engine = ScriptedEngine()
    engine.handlers[INIT] = lambda _engine, _body: as_json({"message": "Weight transfer initialized"})
    began = time.monotonic()
    with pytest.raises(NeverJoined, match="announced success.*missing: 1"):
        form(engine)
    assert time.monotonic() - began < 5.0


def test_the_deadline_says_who_is_missing_and_ends_the_call() -> None:
    engine = ScriptedEngine(world_size=2)

    def one_of_two(engine: ScriptedEngine, body: dict[str, dict[str, int]]) -> Response:
        from tests.support.plane_receiver import PlaneReceiver

        engine.receivers = [PlaneReceiver(body["init_info"]["master_port"], 2, 3)]
        assert engine.aborted.wait(5.0)
        raise closed(Call(INIT, "e", "init"))

    engine.handlers[INIT] = one_of_two
    with pytest.raises(NeverJoined, match="joined: 2, missing: 1"):
        form(engine, total=0.3)
    assert engine.aborted.is_set()


def noted(monkeypatch: pytest.MonkeyPatch, engine: ScriptedEngine, total: float, address: str) -> tuple[str, list[str]]:
    monkeypatch.setattr(rendezvous, "HINT_SECONDS", 0.05)
    listener = TcpPlaneListener(engine.world_size + 1, "127.0.0.1")
    client = EngineClient("http://unused", Timeouts(total=total, grace=0.5), engine)
    said: list[str] = []

    def note(text: str) -> None:
        said.append(text)
        heard.set()

    heard = threading.Event()
    engine.heard = heard  # type: ignore[attr-defined]
    form_group(client, listener, address, note=note).close()
    engine.leave()
    return f"{address}:{listener.port}", said


def test_a_slow_engine_is_worth_a_hint_and_may_still_join(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = ScriptedEngine()

    def slow(engine: ScriptedEngine, body: dict[str, dict[str, object]]) -> Response:
        assert engine.heard.wait(5.0)  # type: ignore[attr-defined]
        return engine.well(INIT, body)

    engine.handlers[INIT] = slow
    place, said = noted(monkeypatch, engine, 20.0, "192.0.2.9")
    assert said == [f"no rank has joined yet at {place}; can the engine reach it? see --master-address"]


def test_no_hint_where_one_rank_of_two_has_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = ScriptedEngine(world_size=2)

    def half(engine: ScriptedEngine, body: dict[str, dict[str, int]]) -> Response:
        from tests.support.plane_receiver import PlaneReceiver

        port = body["init_info"]["master_port"]
        engine.receivers = [PlaneReceiver(port, 1, 3)]
        assert not engine.heard.wait(0.3)  # type: ignore[attr-defined]
        engine.receivers.append(PlaneReceiver(port, 2, 3))
        for receiver in engine.receivers:
            assert receiver.reply() == (0, "")
        return as_json({"message": "Weight transfer initialized"})

    engine.handlers[INIT] = half
    assert noted(monkeypatch, engine, 20.0, "192.0.2.9")[1] == []


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (closed(Call(INIT, "e", "init")), ConnectionClosed),
        (CallTimeout(Call(INIT, "e", "init"), "late", seconds=1.0), NeverJoined),
    ],
)
def test_an_engine_that_does_not_answer(error: SyncError, kind: type[SyncError]) -> None:
    engine = ScriptedEngine()

    def failing(_engine: ScriptedEngine, _body: object) -> Response:
        raise error

    engine.handlers[INIT] = failing
    with pytest.raises(kind):
        form(engine)


def test_a_refusal_after_everyone_joined_closes_the_group() -> None:
    engine = ScriptedEngine()

    def late(engine: ScriptedEngine, body: dict[str, dict[str, object]]) -> Response:
        engine.join(body["init_info"])
        return refusal("changed its mind")

    engine.handlers[INIT] = late
    with pytest.raises(EngineError, match="changed its mind"):
        form(engine)
    assert engine.receivers[0].at_end()
    engine.leave()
