"""One look at an engine."""

from __future__ import annotations

import pytest

from tests.support.scripted_engine import ScriptedEngine, as_json
from vime_sync.calls import Call
from vime_sync.engine import EngineClient
from vime_sync.errors import CallTimeout
from vime_sync.status import EngineStatus, engine_status
from vime_sync.timeouts import Timeouts
from vime_sync.transport import Response

pytestmark = pytest.mark.unit

STATE = {
    "schema": "mock-vllm/state/1",
    "world_size": 2,
    "session": {"active": True, "checkpoint_format": True, "updates": 3, "failed": True},
}


def look(engine: ScriptedEngine) -> EngineStatus:
    engine.handlers.setdefault("/mock/state", lambda _engine, _body: as_json(STATE, **{"x-mock-vllm": "test"}))
    return engine_status(EngineClient("http://unused", Timeouts.resolve(5), engine))


def test_a_mock_shows_its_session() -> None:
    status = look(ScriptedEngine(world_size=2))
    assert (status.version, status.mock_version, status.models, status.world_size) == ("0.21.0", "test", ("tiny",), 2)
    assert (status.paused, status.busy, status.healthy, status.problem) == (False, False, True, None)
    assert "session     open, an update of it failed, 3 updates" in status.lines()
    assert status.as_json()["session"] == STATE["session"]


def test_a_real_server_does_not() -> None:
    engine = ScriptedEngine(mock=False)
    status = look(engine)
    assert status.session is None
    assert "/mock/state" not in engine.routes
    assert any("real server" in line for line in status.lines())
    assert any("not known" in line for line in status.lines())


def test_a_busy_engine_still_has_a_status() -> None:
    engine = ScriptedEngine()

    def late(_engine: ScriptedEngine, _body: object) -> Response:
        raise CallTimeout(Call("/is_paused", "e", "probe"), "late", seconds=1)

    engine.handlers["/is_paused"] = late
    status = look(engine)
    assert (status.busy, status.paused, status.world_size) == (True, None, 2)
    assert "busy        yes: a call is under way" in status.lines()


@pytest.mark.parametrize(("version", "text"), [("0.20.0", "older than"), ("0.99.0", "newer than"), ("x", "cannot be")])
def test_a_release_that_needs_a_word_gets_one(version: str, text: str) -> None:
    status = look(ScriptedEngine(version=version))
    assert text in (status.problem or "")
    assert any(line.startswith("note") for line in status.lines())


def test_a_dead_engine() -> None:
    engine = ScriptedEngine()
    engine.handlers["/health"] = lambda _engine, _body: Response(503)
    assert "health      dead" in look(engine).lines()
