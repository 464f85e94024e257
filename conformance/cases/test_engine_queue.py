"""The engine does one call at a time: what waits behind a blocked one, and what is answered all the same."""

from conformance.case import Case
from conformance.cases.common import (
    DIGESTS,
    FINISH,
    FIRST_RELEASE,
    INIT,
    IS_PAUSED,
    NCCL_ENGINE,
    ON_PLANE,
    PLANE,
    RESUME,
    ROUTER,
    START,
    START_PATH,
    UPDATE_PATH,
    bare_post,
    ignored,
    post,
    post_raw,
)
from conformance.check import check_case as test_case
from conformance.steps import (
    AnswerOf,
    Begin,
    Broadcast,
    Call,
    Healthy,
    Init,
    Meet,
    ReceivedEqualsSent,
    Step,
    StillPending,
    Update,
)

__all__ = ["CASES", "test_case"]

SOURCE = "vllm.v1.engine.core.EngineCore"
FIRST = ignored("queue.first", "float32", 16)
SECOND = ignored("queue.second", "float32", 16)


def waiting(*names: str) -> Update:
    """An update whose broadcast has not come."""
    tensors = {"first": FIRST, "second": SECOND}
    return Update(tuple(tensors[name] for name in names), broadcasts=())


def blocked(number: int, sentence: str, call: Call, *after: Step) -> Case:
    """A call that waits behind an update without its broadcast, and is answered once the bytes have come."""
    steps: tuple[Step, ...] = (
        INIT,
        START,
        Begin("update", waiting("first")),
        StillPending(("update",), 0.25),
        Begin("call", call),
        StillPending(("update", "call")),
        Healthy(),
        Broadcast(FIRST.data),
        AnswerOf("update"),
        AnswerOf("call"),
        *after,
    )
    return Case(f"QUEUE-{number:03}", sentence, steps, "engine-queue", SOURCE, needs=PLANE)


CASES = [
    Case(
        "QUEUE-001",
        "while an update waits for its broadcast the process answers whatever needs no engine",
        (
            INIT,
            START,
            Begin("update", waiting("first", "second")),
            StillPending(("update",), 0.25),
            Healthy(),
            Call("GET", "/version"),
            Call("GET", "/v1/models"),
            Call("GET", "/get_world_size"),
            bare_post("/nope"),
            Call("GET", UPDATE_PATH),
            bare_post("/pause?mode=bogus"),
            bare_post(START_PATH),
            post(UPDATE_PATH, [1]),
            StillPending(("update",), 0.05),
            Broadcast(FIRST.data),
            Broadcast(SECOND.data),
            AnswerOf("update"),
            FINISH,
            ReceivedEqualsSent(),
        ),
        "engine-queue",
        f"{ROUTER}, {SOURCE}",
        needs=DIGESTS,
        applies_to=FIRST_RELEASE,
    ),
    blocked(2, "is_paused waits behind a blocked update", IS_PAUSED, FINISH),
    blocked(3, "pause waits behind a blocked update", bare_post("/pause"), IS_PAUSED, RESUME, FINISH),
    blocked(4, "resume waits behind a blocked update", RESUME, FINISH),
    blocked(5, "a flush waits behind a blocked update", bare_post("/reset_prefix_cache"), FINISH),
    blocked(6, "a start waits behind a blocked update, and is refused then", START, FINISH),
    blocked(7, "a finish waits behind a blocked update, and closes the session then", FINISH, FINISH),
    Case(
        "QUEUE-008",
        "calls behind a blocked update are done in the order in which they came",
        (
            INIT,
            START,
            Begin("update", waiting("first")),
            StillPending(("update",), 0.25),
            Begin("before", IS_PAUSED),
            StillPending(("before",), 0.25),
            Begin("pause", bare_post("/pause?mode=keep")),
            StillPending(("pause",), 0.25),
            Begin("after", IS_PAUSED),
            StillPending(("update", "before", "pause", "after"), 0.25),
            Broadcast(FIRST.data),
            AnswerOf("update"),
            AnswerOf("before"),
            AnswerOf("pause"),
            AnswerOf("after"),
            RESUME,
            FINISH,
        ),
        "engine-queue",
        SOURCE,
        needs=PLANE,
    ),
    Case(
        "QUEUE-009",
        "a second update waits for the first, then for its own broadcast",
        (
            INIT,
            START,
            Begin("one", waiting("first")),
            StillPending(("one",), 0.25),
            Begin("two", waiting("second")),
            StillPending(("one", "two"), 0.25),
            Broadcast(FIRST.data),
            AnswerOf("one"),
            StillPending(("two",), 0.25),
            Broadcast(SECOND.data),
            AnswerOf("two"),
            FINISH,
            ReceivedEqualsSent(),
        ),
        "engine-queue",
        SOURCE,
        needs=DIGESTS,
    ),
    Case(
        "QUEUE-010",
        "an init blocks the engine until the trainer lets it in",
        (
            Begin("init", Init(meets=False)),
            StillPending(("init",), 0.25),
            Begin("is_paused", IS_PAUSED),
            StillPending(("init", "is_paused")),
            Healthy(),
            Meet(),
            AnswerOf("init"),
            AnswerOf("is_paused"),
        ),
        "rendezvous",
        f"{NCCL_ENGINE}.init_transfer_engine",
        needs=PLANE,
    ),
    Case(
        "QUEUE-011",
        "malformed JSON is refused at once while an init blocks the engine",
        (
            Begin("init", Init(meets=False, beside={"blocks": True})),
            StillPending(("init",), 0.25),
            post_raw(UPDATE_PATH, b"{bad"),
            post(START_PATH, None),
            Meet(),
            AnswerOf("init"),
        ),
        "engine-queue",
        ROUTER,
        needs=PLANE,
        applies_to=FIRST_RELEASE,
    ),
    Case(
        "QUEUE-012",
        "an update waits between two tensors as it does before the first",
        (
            INIT,
            START,
            Begin("update", waiting("second", "first")),
            Broadcast(SECOND.data),
            StillPending(("update",)),
            Healthy(),
            Broadcast(FIRST.data),
            AnswerOf("update"),
            FINISH,
            ReceivedEqualsSent(),
        ),
        "engine-queue",
        f"{NCCL_ENGINE}.receive_weights",
        needs=DIGESTS,
        tags=ON_PLANE,
    ),
]
