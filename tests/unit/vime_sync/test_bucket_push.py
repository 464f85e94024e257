"""One bucket: announcement first, then the broadcasts, and the engine's word at any moment."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from tests.support.arrays import Array
from tests.support.scripted_engine import Handler, ScriptedEngine, as_json, closed, refusal
from vime_sync.bucket_push import push_bucket
from vime_sync.buckets import plan
from vime_sync.calls import Call
from vime_sync.engine import EngineClient
from vime_sync.errors import (
    CallTimeout,
    ConnectionClosed,
    EarlyAnswer,
    EngineError,
    Mismatch,
    PeerGone,
    Stalled,
    SyncError,
)
from vime_sync.releases import release_of
from vime_sync.rendezvous import form_group
from vime_sync.session import SessionState, WeightUpdateSession
from vime_sync.tcp_plane_listener import TcpPlaneListener
from vime_sync.tcp_plane_sender import TcpPlaneSender
from vime_sync.timeouts import Timeouts
from vime_sync.transport import Response

pytestmark = pytest.mark.unit

UPDATE = "/update_weights"
LARGE = [Array("large", "uint8", (64 << 20,)), Array("tail", "uint8", (5,))]
SMALL = [Array("a", seed=1), Array("b", "bfloat16", (3,), seed=2)]
UPDATED = as_json({"message": "Weights updated"})


class Pushing:
    """A session and a group on a scripted engine, ready for one bucket."""

    def __init__(self, handler: Handler | None = None, *, total: float = 20.0, world_size: int = 1) -> None:
        self.engine = ScriptedEngine(world_size=world_size)
        self.client = EngineClient("http://unused", Timeouts(total=total, grace=0.5), self.engine)
        listener = TcpPlaneListener(world_size + 1, "127.0.0.1")
        self.group: TcpPlaneSender = form_group(self.client, listener, "127.0.0.1")
        self.session = WeightUpdateSession(self.client, world_size=world_size)
        self.session.start()
        if handler is not None:
            self.engine.handlers[UPDATE] = handler

    def push(
        self, tensors: list[Array], *, packed: bool = False, on_bytes: Callable[[int], None] | None = None
    ) -> None:
        (bucket,) = plan(tensors, release_of("0.21.0"), packed=packed)
        try:
            push_bucket(self.session, self.group, bucket, on_bytes=on_bytes or (lambda _: None))
        finally:
            self.group_was_closed = self.group.closed
            self.group.close()
            self.engine.leave()


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


def test_every_transfer_error_is_one_of_ours() -> None:
    for kind in (EarlyAnswer, Stalled, PeerGone, Mismatch):
        assert issubclass(kind, SyncError)
