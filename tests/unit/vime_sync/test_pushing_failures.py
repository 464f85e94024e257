"""Pushes that fail: what they say, and what they leave behind."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.arrays import Array
from tests.support.scripted_engine import ScriptedEngine, as_json, closed, refusal
from vime_sync import rendezvous
from vime_sync.calls import Call
from vime_sync.errors import (
    ConnectError,
    ConnectionClosed,
    DigestMismatch,
    EarlyAnswer,
    EngineError,
    InvalidInfo,
    NeverJoined,
    OrderError,
    SyncError,
)
from vime_sync.progress import Silent
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


def run(engine: ScriptedEngine, source: Any = None, **options: Any) -> PushReport:
    options.setdefault("timeouts", Timeouts(total=10.0, grace=0.5))
    return push(ARRAYS if source is None else source, "http://127.0.0.1:8000", transport=engine, **options)


def failing(route: str, answer: Response) -> ScriptedEngine:
    engine = ScriptedEngine()
    engine.handlers[route] = lambda _engine, _body: answer
    return engine


ERROR = refusal("x")
PAUSE = Call("/pause", "http://engine", "pause")


@pytest.mark.parametrize(
    ("route", "answer", "kind", "state", "step"),
    [
        ("/version", ERROR, EngineError, "nothing was changed", None),
        ("/pause", ERROR, EngineError, "may not be paused", "push again"),
        ("/pause", refusal("x", 400), InvalidInfo, "may not be paused", "push again"),
        ("/reset_prefix_cache", ERROR, EngineError, "left paused with the weights it had", "push again"),
        ("/init_weight_transfer_engine", ERROR, EngineError, "left paused with the weights it had", "push again"),
        (
            "/init_weight_transfer_engine",
            as_json({"message": "Weight transfer initialized"}),
            NeverJoined,
            "may still wait for the trainer",
            "vime-sync status",
        ),
        (
            "/init_weight_transfer_engine",
            as_json({"message": "Weight transfer initialized"}),
            NeverJoined,
            "may still wait for the trainer",
            "--bind-address, where the trainer listens",
        ),
        ("/init_weight_transfer_engine", ERROR, EngineError, "left paused", "check --master-address"),
        ("/init_weight_transfer_engine", ERROR, EngineError, "left paused", "--bind-address"),
        ("/init_weight_transfer_engine", refusal("x", 400), InvalidInfo, "left paused", "push again"),
        ("/start_weight_update", ERROR, EngineError, "left paused with the weights it had", "push again"),
        (
            "/start_weight_update",
            refusal("start_weight_update called while a weight update is already active."),
            OrderError,
            "a session that this push did not open",
            "POST /finish_weight_update",
        ),
        ("/update_weights", ERROR, EngineError, "may mix old and new weights", "push again"),
        ("/update_weights", refusal("Missing", 400), InvalidInfo, "may mix old and new weights", "push again"),
        ("/finish_weight_update", ERROR, EngineError, "not known", "vime-sync status"),
        ("/mock/weights", ERROR, SyncError, "", ""),
        ("/resume", ERROR, EngineError, "live and whole", "POST /resume"),
    ],
)
def test_a_failure_leaves_the_engine_paused_and_says_what_it_left(
    route: str, answer: Response, kind: type[SyncError], state: str, step: str | None
) -> None:
    engine = failing(route, answer)
    if route == "/mock/weights":
        # Without the mock's header this is a real server, which merely lacks the route.
        assert run(engine).verified is None
        return
    with pytest.raises(kind) as caught:
        run(engine)
    assert state in (caught.value.state or "")
    assert (step or "") in (caught.value.next_step or "")
    assert "\n" not in caught.value.line()
    assert engine.routes.count("/resume") == (1 if route == "/resume" else 0)


@pytest.mark.parametrize(
    ("error", "state"),
    [
        (closed(PAUSE), "may be paused"),
        (KeyboardInterrupt(), "may be paused"),
        (EngineError(PAUSE, "no", status=500), "may not be paused"),
        (ConnectError(PAUSE, "no"), "nothing was changed"),
    ],
)
def test_a_pause_that_was_not_confirmed_is_never_called_one(error: BaseException, state: str) -> None:
    engine = ScriptedEngine()

    def failing(_engine: ScriptedEngine, _body: object) -> Response:
        raise error

    engine.handlers["/pause"] = failing
    with pytest.raises(type(error)) as caught:
        run(engine)
    told = f"{getattr(caught.value, 'state', None)} {getattr(caught.value, '__notes__', None)}"
    assert state in told
    assert "left paused" not in told
    assert engine.routes[-1] == "/pause"


def test_a_lost_engine_leaves_nothing_known() -> None:
    engine = ScriptedEngine()

    def dying(_engine: ScriptedEngine, _body: object) -> Response:
        raise closed(Call("/update_weights", "http://engine", "update", 0))

    engine.handlers["/update_weights"] = dying
    with pytest.raises(ConnectionClosed) as caught:
        run(engine)
    assert "not known" in (caught.value.state or "")
    assert "/finish_weight_update" not in engine.routes
    assert "/resume" not in engine.routes


def test_an_engine_that_nobody_joins_from_says_what_to_check(monkeypatch: pytest.MonkeyPatch) -> None:
    class Noting(Silent):
        def note(self, text: str) -> None:
            noted.append(text)

    monkeypatch.setattr(rendezvous, "HINT_SECONDS", 0.05)
    noted: list[str] = []
    engine = ScriptedEngine()

    def silent(engine: ScriptedEngine, _body: object) -> Response:
        assert engine.aborted.wait(5.0)
        raise closed(Call("/init_weight_transfer_engine", "http://engine", "init"))

    engine.handlers["/init_weight_transfer_engine"] = silent
    with pytest.raises(NeverJoined, match="missing: 1") as caught:
        run(engine, timeouts=Timeouts(total=0.3, grace=0.2), progress=Noting())
    assert len(noted) == 1
    assert noted[0].startswith("no rank has joined yet at 127.0.0.1:")
    assert "check --master-address" in caught.value.line()
    assert "--bind-address" in caught.value.line()


def test_several_workers_after_a_refused_init_need_a_restart_too() -> None:
    engine = ScriptedEngine(world_size=2)
    engine.handlers["/init_weight_transfer_engine"] = lambda _engine, _body: ERROR
    with pytest.raises(EngineError) as caught:
        run(engine)
    assert "no longer belong to the calls" in (caught.value.state or "")
    assert "check --master-address" in (caught.value.next_step or "")
    assert "restart the engine" in (caught.value.next_step or "")


def test_several_workers_after_a_refusal_need_a_restart() -> None:
    engine = ScriptedEngine(world_size=2)
    engine.handlers["/update_weights"] = lambda _engine, _body: ERROR
    with pytest.raises(EngineError) as caught:
        run(engine)
    assert "restart" in (caught.value.next_step or "")
    assert engine.routes[-1] == "/update_weights"


def test_one_flipped_bit_is_found_and_named_and_nothing_resumed() -> None:
    engine = ScriptedEngine()

    def flipping(engine: ScriptedEngine, body: dict[str, Any]) -> Response:
        engine.receive(body["update_info"])
        if "odd" in engine.held:
            engine.held["odd"]["sha256"] = "0" + engine.held["odd"]["sha256"][1:].replace("a", "b")
        return as_json({"message": "Weights updated"})

    engine.handlers["/update_weights"] = flipping
    with pytest.raises(DigestMismatch, match="rank 0: odd") as caught:
        run(engine)
    assert caught.value.names == ("odd",)
    assert "not those sent" in (caught.value.state or "")
    assert "/resume" not in engine.routes


def test_an_engine_that_announces_success_without_receiving_is_found_out() -> None:
    # Whether its answer or the last byte comes first is chance; either way it does not pass for success.
    engine = failing("/update_weights", as_json({"message": "Weights updated"}))
    with pytest.raises((EarlyAnswer, DigestMismatch)):
        run(engine)
    assert "/resume" not in engine.routes


def test_an_engine_that_drops_what_it_received_is_found_out() -> None:
    engine = ScriptedEngine()

    def dropping(engine: ScriptedEngine, body: dict[str, Any]) -> Response:
        engine.receive(body["update_info"])
        engine.held.clear()
        return as_json({"message": "Weights updated"})

    engine.handlers["/update_weights"] = dropping
    with pytest.raises(DigestMismatch, match="missing") as caught:
        run(engine)
    assert caught.value.names == ("odd", "scalar", "weight", "wide")


def test_an_interruption_closes_the_session_and_keeps_a_note() -> None:
    class Interrupting(Silent):
        def begin(self, nbytes: int, buckets: int) -> None:
            assert (nbytes, buckets) == (55, 2)

        def bucket(self, index: int) -> None:
            if index == 1:
                raise KeyboardInterrupt

        def advance(self, nbytes: int) -> None:
            assert nbytes > 0

        def end(self) -> None:
            ended.append(True)

    ended: list[bool] = []
    engine = ScriptedEngine()
    with pytest.raises(KeyboardInterrupt) as caught:
        run(engine, progress=Interrupting())
    assert engine.routes[-1] == "/finish_weight_update"
    assert any("may mix" in note for note in caught.value.__notes__)
    assert ended == [True]
