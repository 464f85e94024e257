"""The session closes what it opened and never hides the first error."""

from __future__ import annotations

import pytest

from tests.support.scripted_engine import ScriptedEngine, as_json, closed, refusal
from vime_sync.calls import Call
from vime_sync.engine import EngineClient
from vime_sync.errors import (
    ConnectError,
    ConnectionClosed,
    EngineError,
    InvalidInfo,
    OrderError,
    Refused,
    UnsupportedRelease,
)
from vime_sync.releases import release_of
from vime_sync.session import SessionState, WeightUpdateSession
from vime_sync.timeouts import Timeouts
from vime_sync.transport import Response

pytestmark = pytest.mark.unit

UPDATED = {"message": "Weights updated"}
BUSY = "start_weight_update called while a weight update is already active. Call finish_weight_update first."


def session(engine: ScriptedEngine, world_size: int = 1) -> WeightUpdateSession:
    engine.handlers.setdefault("/update_weights", lambda _engine, _body: as_json(UPDATED))
    client = EngineClient("http://unused", Timeouts.resolve(5), engine, release=release_of(engine.version))
    return WeightUpdateSession(client, world_size=world_size)


def test_all_goes_well() -> None:
    engine = ScriptedEngine()
    with session(engine) as one:
        assert one.state is SessionState.OPEN
        one.update({})
    assert one.state is SessionState.FINISHED
    assert engine.routes == ["/start_weight_update", "/update_weights", "/finish_weight_update"]


def test_a_refused_start_opens_nothing_and_closes_nothing() -> None:
    engine = ScriptedEngine()
    engine.handlers["/start_weight_update"] = lambda _engine, _body: refusal(BUSY)
    one = session(engine)
    with pytest.raises(OrderError), one:
        pytest.fail("must not be entered")
    assert one.state is SessionState.NOT_OPENED
    assert engine.routes == ["/start_weight_update"]


def test_an_unanswered_start_leaves_the_state_unknown() -> None:
    engine = ScriptedEngine()

    def lost(_engine: ScriptedEngine, _body: object) -> Response:
        raise closed(Call("/start_weight_update", "e", "start"))

    engine.handlers["/start_weight_update"] = lost
    one = session(engine)
    with pytest.raises(ConnectionClosed):
        one.start()
    assert one.state is SessionState.UNKNOWN


def test_an_unreachable_engine_has_not_seen_the_start() -> None:
    engine = ScriptedEngine()

    def absent(_engine: ScriptedEngine, _body: object) -> Response:
        raise ConnectError(Call("/start_weight_update", "e", "start"), "refused")

    engine.handlers["/start_weight_update"] = absent
    one = session(engine)
    with pytest.raises(ConnectError):
        one.start()
    assert one.state is SessionState.NOT_OPENED


def test_a_refused_update_is_closed_and_the_refusal_comes_through() -> None:
    engine = ScriptedEngine()
    engine.handlers["/update_weights"] = lambda _engine, _body: refusal("first")
    one = session(engine)
    with pytest.raises(EngineError) as caught, one:
        one.update({}, bucket=4)
    assert caught.value.detail == "first"
    assert caught.value.bucket == 4
    assert one.state is SessionState.CLOSED_EARLY
    assert engine.routes == ["/start_weight_update", "/update_weights", "/finish_weight_update"]


@pytest.mark.parametrize("version", ["0.23.0", "0.27.0", "0.28.0", "0.31.0", "0.32.0", "0.33.0"])
def test_a_release_that_closed_the_session_itself_is_brought_back(version: str) -> None:
    # vLLM from 0.23 on: the failed update closed the session and left the parameters on the meta device.
    engine = ScriptedEngine(version=version)
    engine.handlers["/update_weights"] = lambda _engine, _body: refusal("first")
    one = session(engine)
    with pytest.raises(Refused, match="first") as caught, one:
        one.update({})
    assert not hasattr(caught.value, "__notes__")
    assert one.state is SessionState.CLOSED_EARLY
    assert engine.routes[2:] == ["/start_weight_update", "/finish_weight_update"]
    assert (engine.open, engine.half_loaded) == (False, False)


@pytest.mark.parametrize("version", ["0.21.0", "0.22.1", "0.23.0", "0.32.0"])
def test_what_the_http_layer_refuses_leaves_the_session_open_and_it_is_finished(version: str) -> None:
    engine = ScriptedEngine(version=version)
    engine.handlers["/update_weights"] = lambda _engine, _body: refusal("first", 400)
    one = session(engine)
    with pytest.raises(InvalidInfo), one:
        one.update({})
    assert one.state is SessionState.CLOSED_EARLY
    assert engine.routes[2:] == ["/finish_weight_update"]
    assert engine.open is False


def test_a_session_asks_for_the_release_before_it_opens() -> None:
    engine = ScriptedEngine(version="0.20.0")
    one = WeightUpdateSession(EngineClient("http://unused", Timeouts.resolve(5), engine))
    with pytest.raises(UnsupportedRelease):
        one.start()
    assert (engine.routes, one.state) == (["/version"], SessionState.NOT_OPENED)


def test_a_weight_version_goes_with_the_finish_and_never_with_a_clean_up() -> None:
    def named(engine: ScriptedEngine) -> WeightUpdateSession:
        engine.handlers.setdefault("/update_weights", lambda _engine, _body: as_json(UPDATED))
        return WeightUpdateSession(EngineClient("http://unused", Timeouts.resolve(5), engine), weight_version="7")

    engine = ScriptedEngine(version="0.27.0")
    with named(engine) as one:
        one.update({})
    assert engine.weight_version == "7"
    engine = ScriptedEngine(version="0.27.0")
    with pytest.raises(ZeroDivisionError), named(engine):
        raise ZeroDivisionError
    assert engine.weight_version == "default"
    engine = ScriptedEngine(version="0.26.0")
    with pytest.raises(UnsupportedRelease):
        named(engine).start()
    assert engine.routes == ["/version"]


def test_a_failing_clean_up_is_a_note_and_never_masks() -> None:
    engine = ScriptedEngine()
    engine.handlers["/update_weights"] = lambda _engine, _body: refusal("first")
    engine.handlers["/finish_weight_update"] = lambda _engine, _body: refusal("second")
    one = session(engine)
    with pytest.raises(EngineError, match="first") as caught, one:
        one.update({})
    assert any("second" in note for note in caught.value.__notes__)
    assert one.state is SessionState.UNKNOWN


def test_an_error_of_the_caller_s_own_closes_the_session() -> None:
    engine = ScriptedEngine()
    one = session(engine)
    with pytest.raises(ZeroDivisionError), one:
        raise ZeroDivisionError
    assert one.state is SessionState.CLOSED_EARLY
    assert engine.routes == ["/start_weight_update", "/finish_weight_update"]


def test_nothing_is_asked_of_an_engine_whose_answer_is_outstanding() -> None:
    engine = ScriptedEngine()

    def lost(_engine: ScriptedEngine, _body: object) -> Response:
        raise closed(Call("/update_weights", "e", "update"))

    engine.handlers["/update_weights"] = lost
    one = session(engine)
    with pytest.raises(ConnectionClosed), one:
        one.update({})
    assert one.state is SessionState.UNKNOWN
    assert engine.routes == ["/start_weight_update", "/update_weights"]


@pytest.mark.parametrize(
    ("status", "state", "after"),
    [(500, SessionState.OUT_OF_STEP, []), (400, SessionState.CLOSED_EARLY, ["/finish_weight_update"])],
)
def test_with_several_workers_a_failure_behind_the_http_layer_ends_the_conversation(
    status: int, state: SessionState, after: list[str]
) -> None:
    engine = ScriptedEngine()
    engine.handlers["/update_weights"] = lambda _engine, _body: refusal("x", status)
    one = session(engine, world_size=2)
    with pytest.raises(Refused), one:
        one.update({})
    assert one.state is state
    assert engine.routes[2:] == after


def test_with_several_workers_a_refused_start_may_be_the_answer_to_an_older_call() -> None:
    for world_size, state in ((1, SessionState.NOT_OPENED), (2, SessionState.OUT_OF_STEP)):
        engine = ScriptedEngine()
        engine.handlers["/start_weight_update"] = lambda _engine, _body: refusal("x")
        one = session(engine, world_size)
        with pytest.raises(EngineError):
            one.start()
        assert one.state is state


def test_a_failing_finish_is_raised_and_the_state_unknown() -> None:
    engine = ScriptedEngine()
    engine.handlers["/finish_weight_update"] = lambda _engine, _body: refusal("late")
    one = session(engine)
    with pytest.raises(EngineError, match="late"), one:
        pass
    assert one.state is SessionState.UNKNOWN
    assert engine.routes.count("/finish_weight_update") == 1


def test_the_session_never_resumes() -> None:
    for failing in ("/start_weight_update", "/update_weights", "/finish_weight_update", ""):
        engine = ScriptedEngine()
        if failing:
            engine.handlers[failing] = lambda _engine, _body: refusal("x")
        one = session(engine)
        try:
            with one:
                one.update({})
        except Refused:
            assert failing
        assert "/resume" not in engine.routes
