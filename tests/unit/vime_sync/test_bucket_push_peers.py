"""One bucket whose receivers leave, before, while or after they take it."""

from __future__ import annotations

import time

import pytest

from tests.support.arrays import Array
from tests.support.pushing import UPDATE, Pushing
from tests.support.scripted_engine import ScriptedEngine, as_json, closed, refusal
from vime_sync.calls import Call
from vime_sync.errors import (
    ConnectionClosed,
    EngineError,
    PeerGone,
)
from vime_sync.transport import Response

pytestmark = pytest.mark.unit

LARGE = [Array("large", "uint8", (64 << 20,)), Array("tail", "uint8", (5,))]
SMALL = [Array("a", seed=1), Array("b", "bfloat16", (3,), seed=2)]
UPDATED = as_json({"message": "Weights updated"})


def test_a_dying_engine_is_the_connection_s_end_and_mentions_the_plane() -> None:
    def dying(engine: ScriptedEngine, _body: object) -> Response:
        engine.receivers[0].exactly(1 << 20)
        engine.leave()
        raise closed(Call(UPDATE, "e", "update", 0))

    with pytest.raises(ConnectionClosed):
        Pushing(dying).push(LARGE)


def test_a_worker_that_leaves_is_explained_by_its_engine() -> None:
    def aborting(engine: ScriptedEngine, _body: object) -> Response:
        engine.receivers[0].exactly(17)
        engine.receivers[0].abort("expected 1 byte")
        engine.receivers[0].sock.settimeout(5.0)
        with pytest.raises(EOFError):
            engine.receivers[0].exactly(1 << 30)
        return refusal("mismatch")

    with pytest.raises(EngineError, match="mismatch") as caught:
        Pushing(aborting).push(LARGE)
    assert any("expected 1 byte" in note for note in caught.value.__notes__)


def test_a_worker_that_leaves_while_its_engine_stays_silent() -> None:
    def silent(engine: ScriptedEngine, _body: object) -> Response:
        engine.receivers[0].exactly(17)
        engine.leave()
        assert engine.aborted.wait(10.0)
        raise closed(Call(UPDATE, "e", "update", 0))

    pushing = Pushing(silent)
    with pytest.raises(PeerGone, match="bucket 1: rank 1 left"):
        pushing.push(LARGE)
    assert pushing.engine.aborted.is_set()


def test_a_worker_that_dies_after_it_took_everything_does_not_keep_the_trainer_waiting() -> None:
    def dying(engine: ScriptedEngine, body: dict[str, dict[str, object]]) -> Response:
        engine.receive(body["update_info"])
        engine.leave()
        assert engine.aborted.wait(10.0)
        raise closed(Call(UPDATE, "e", "update", 0))

    pushing = Pushing(dying)
    began = time.monotonic()
    with pytest.raises(PeerGone, match="rank 1 left"):
        pushing.push(SMALL)
    assert time.monotonic() - began < 5.0


def test_a_worker_that_leaves_once_it_took_everything_does_not_undo_a_success() -> None:
    def leaving(engine: ScriptedEngine, body: dict[str, dict[str, object]]) -> Response:
        engine.receive(body["update_info"])
        engine.leave()
        time.sleep(0.1)  # the end of the connection is to be seen before the answer
        return UPDATED

    pushing = Pushing(leaving)
    pushing.push(SMALL)
    assert pushing.group_was_closed
