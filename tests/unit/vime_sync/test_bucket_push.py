"""One bucket: announcement first, then the broadcasts, and the engine's word at any moment."""

from __future__ import annotations

import threading
import time

import pytest

from tests.support.arrays import Array
from tests.support.pushing import UPDATE, Pushing
from tests.support.scripted_engine import ScriptedEngine, as_json, closed, refusal
from vime_sync.calls import Call
from vime_sync.errors import (
    Abandoned,
    CallTimeout,
    EarlyAnswer,
    EngineError,
    Mismatch,
    Stalled,
)
from vime_sync.session import SessionState
from vime_sync.transport import Response

pytestmark = pytest.mark.unit

LARGE = [Array("large", "uint8", (64 << 20,)), Array("tail", "uint8", (5,))]
SMALL = [Array("a", seed=1), Array("b", "bfloat16", (3,), seed=2)]
UPDATED = as_json({"message": "Weights updated"})


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("world_size", [1, 2])
def test_what_is_announced_is_what_arrives(packed: bool, world_size: int) -> None:
    told: list[int] = []
    pushing = Pushing(world_size=world_size)
    pushing.push(SMALL, packed=packed, on_bytes=told.append)
    assert set(pushing.engine.held) == {"a", "b"}
    assert sum(told) == 8 + 6
    assert pushing.session.state is SessionState.OPEN
    assert not pushing.group_was_closed


def test_nothing_is_sent_before_the_announcement_is_out() -> None:
    may_go = threading.Event()
    arrived: list[float] = []

    class Slow(ScriptedEngine):
        def request(self, call: Call, method: str, **options: object) -> Response:
            if call.route == UPDATE:
                # The request is still being sent: nothing may arrive on the plane meanwhile.
                self.receivers[0].sock.settimeout(0.2)
                with pytest.raises(TimeoutError):
                    self.receivers[0].exactly(1)
                self.receivers[0].sock.settimeout(5.0)
                arrived.append(time.monotonic())
            return super().request(call, method, **options)  # type: ignore[arg-type]

    may_go.set()
    pushing = Pushing()
    pushing.engine.__class__ = Slow
    pushing.push(SMALL)
    assert len(arrived) == 1


def test_a_refusal_before_the_broadcast_is_raised_and_the_group_never_used_again() -> None:
    pushing = Pushing(lambda _engine, _body: refusal("bad names"))
    with pytest.raises(EngineError, match="bad names") as caught:
        pushing.push(LARGE)
    assert caught.value.bucket == 0
    assert pushing.group_was_closed
    assert pushing.session.state is SessionState.FAILED


def test_a_refusal_in_the_middle_of_a_broadcast_ends_it_at_once() -> None:
    def partly(engine: ScriptedEngine, _body: object) -> Response:
        engine.receivers[0].exactly(1 << 20)
        return refusal("Attempted to load weight")

    pushing = Pushing(partly)
    began = time.monotonic()
    with pytest.raises(EngineError, match="Attempted to load weight"):
        pushing.push(LARGE)
    assert time.monotonic() - began < 10.0
    assert pushing.group_was_closed


def test_a_success_while_bytes_are_left_is_an_error() -> None:
    pushing = Pushing(lambda _engine, _body: UPDATED)
    with pytest.raises(EarlyAnswer, match=r"bucket 1: .*announced success when \d+ of 67108869 bytes"):
        pushing.push(LARGE)
    assert pushing.group_was_closed


def test_an_engine_that_takes_nothing_is_stalled_at_the_deadline_and_told() -> None:
    def deaf(engine: ScriptedEngine, _body: object) -> Response:
        assert engine.aborted.wait(10.0)
        raise closed(Call(UPDATE, "e", "update", 0))

    pushing = Pushing(deaf, total=0.4)
    with pytest.raises(Stalled, match="bucket 1: rank 1 took"):
        pushing.push(LARGE)
    assert pushing.engine.aborted.is_set()
    assert pushing.session.state is SessionState.UNKNOWN


def test_the_same_deadline_seen_first_by_the_call_is_stalled_too() -> None:
    def late(engine: ScriptedEngine, _body: object) -> Response:
        engine.receivers[0].exactly(1000)
        raise CallTimeout(Call(UPDATE, "e", "update", 0), "no answer", seconds=7.0)

    with pytest.raises(Stalled, match="deadline of 7 s"):
        Pushing(late).push(LARGE)


def test_everything_handed_over_and_no_answer_is_a_timeout_of_the_call() -> None:
    def mute(engine: ScriptedEngine, body: dict[str, dict[str, object]]) -> Response:
        engine.receive(body["update_info"])
        raise CallTimeout(Call(UPDATE, "e", "update", 0), "no answer", seconds=7.0)

    pushing = Pushing(mute)
    with pytest.raises(CallTimeout):
        pushing.push(SMALL)
    assert pushing.session.state is SessionState.UNKNOWN
    assert pushing.group_was_closed


def test_a_closed_group_is_refused_before_anything_is_announced() -> None:
    pushing = Pushing()
    pushing.group.close()
    with pytest.raises(Abandoned, match="bucket 1: the group is closed"):
        pushing.push(SMALL)
    assert UPDATE not in pushing.engine.routes


def test_a_source_that_yields_other_bytes_stops_before_they_are_sent() -> None:
    def waiting(engine: ScriptedEngine, _body: object) -> Response:
        with pytest.raises(EOFError):
            engine.receivers[0].frame()
        return refusal("the trainer left")

    pushing = Pushing(waiting)
    with pytest.raises(Mismatch, match="'odd'") as caught:
        pushing.push([Array("odd", shape=(4,), content=b"123")])
    assert caught.value.bucket == 0
    assert pushing.group_was_closed


def test_an_interruption_lets_the_engine_answer_and_comes_through() -> None:
    answered = threading.Event()

    def waiting(engine: ScriptedEngine, _body: object) -> Response:
        with pytest.raises(EOFError):
            engine.receivers[0].exactly(1 << 30)
        answered.set()
        return refusal("the trainer left")

    def interrupt(_more: int) -> None:
        raise KeyboardInterrupt

    pushing = Pushing(waiting)
    with pytest.raises(KeyboardInterrupt):
        pushing.push(LARGE, on_bytes=interrupt)
    assert answered.is_set()
    assert pushing.session.state is SessionState.FAILED
