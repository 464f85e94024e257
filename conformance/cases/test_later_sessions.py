"""Sessions of 0.32.0, where a failed update closes its session and leaves the model without data."""

from conformance.case import Case
from conformance.cases.common import (
    CHECKED,
    DIGESTS,
    FINISH,
    INIT,
    IS_PAUSED,
    LATER_ROUTER,
    MODEL,
    NCCL_ENGINE,
    ON_PLANE,
    ONLY_0_32,
    PLANE,
    START,
    UPDATE_PATH,
    WORKER,
    bare_post,
    dropped,
    filled,
    parameter,
    post,
    post_raw,
    sync,
)
from conformance.check import check_case as test_case
from conformance.steps import (
    AnswerOf,
    Begin,
    Broadcast,
    Call,
    Healthy,
    Holds,
    Init,
    LeaveGroup,
    Meet,
    ReceivedEqualsSent,
    StillPending,
    Update,
)
from conformance.tensor import Tensor

__all__ = ["CASES", "test_case"]

RELOAD = "vllm.model_executor.model_loader.reload"
RECEIVE = f"{NCCL_ENGINE}.receive_weights"
LAYER = "model.layers.0."
ONE = dropped("sessions.one", "float32", 16)
TWO = dropped("sessions.two", "float32", 16)
LONG = dropped("sessions.long", "float32", 32)
BAD = post(UPDATE_PATH, {"update_info": {"bogus": "session"}})
HALF = Update((parameter(LAYER + "self_attn.q_proj.weight"), parameter(LAYER + "mlp.gate_proj.weight")))
FAILS = Update((filled("no.such", "float32", 4),))


def renamed(tensor: Tensor, data: bytes) -> Tensor:
    """The tensor with other bytes."""
    return Tensor(tensor.name, tensor.dtype, tensor.shape, data)


CASES = [
    Case(
        "FAILED-037",
        "half a layer, a refused tensor, start and finish, then a full sync: the recovery that is right",
        (INIT, START, HALF, FAILS, START, FINISH, INIT, *sync("B", bucket=10)),
        "recovery",
        RELOAD,
        applies_to=ONLY_0_32,
        needs=MODEL | CHECKED,
    ),
    Case(
        "FAILED-038",
        "half a layer, a refused tensor, then a start and everything again",
        (INIT, START, HALF, FAILS, INIT, *sync("A", bucket=10)[:-1]),
        "recovery",
        RELOAD,
        applies_to=ONLY_0_32,
        needs=CHECKED,
    ),
    Case(
        "FAILED-039",
        "after a failed update a second update finds no session",
        (START, BAD, post(UPDATE_PATH, {"update_info": {"bogus": "again"}}), START, FINISH),
        "failed-update-start",
        f"{WORKER}.update_weights",
        applies_to=ONLY_0_32,
    ),
    Case(
        "FAILED-040",
        "a body that the HTTP layer refuses leaves the session open",
        (START, post(UPDATE_PATH, {"update_info": 7}), START, FINISH, FINISH),
        "session-order",
        f"{LATER_ROUTER}.update_weights",
        applies_to=ONLY_0_32,
    ),
    Case(
        "QUEUE-013",
        "while an update waits for its broadcast the process answers whatever needs no engine",
        (
            INIT,
            START,
            Begin("update", Update((ONE, TWO), broadcasts=())),
            StillPending(("update",), 0.25),
            Healthy(),
            Call("GET", "/version"),
            Call("GET", "/v1/models"),
            Call("GET", "/get_world_size"),
            bare_post("/nope"),
            Call("GET", UPDATE_PATH),
            bare_post("/pause?mode=bogus"),
            post(UPDATE_PATH, [1]),
            post("/abort_requests", {}),
            StillPending(("update",), 0.05),
            Broadcast(ONE.data),
            Broadcast(TWO.data),
            AnswerOf("update"),
            FINISH,
            ReceivedEqualsSent(),
        ),
        "engine-queue",
        LATER_ROUTER,
        applies_to=ONLY_0_32,
        needs=DIGESTS,
    ),
    Case(
        "QUEUE-014",
        "malformed JSON is refused at once while an init blocks the engine",
        (
            Begin("init", Init(meets=False, beside={"blocks": True})),
            StillPending(("init",), 0.25),
            post_raw(UPDATE_PATH, b"{bad"),
            post("/update_weight_version", {"new_version": 1}),
            Meet(),
            AnswerOf("init"),
        ),
        "engine-queue",
        LATER_ROUTER,
        applies_to=ONLY_0_32,
        needs=PLANE,
    ),
    Case(
        "QUEUE-015",
        "the label waits behind a blocked update",
        (
            INIT,
            START,
            Begin("update", Update((TWO,), broadcasts=())),
            StillPending(("update",), 0.25),
            Begin("info", Call("GET", "/weight_info")),
            Begin("paused", IS_PAUSED),
            StillPending(("update", "info", "paused")),
            Healthy(),
            Broadcast(TWO.data),
            AnswerOf("update"),
            AnswerOf("info"),
            AnswerOf("paused"),
            FINISH,
        ),
        "engine-queue",
        LATER_ROUTER,
        applies_to=ONLY_0_32,
        needs=PLANE,
    ),
    Case(
        "PLANE-022",
        "the broadcast of a refused update becomes the next session's bucket, without an error",
        (
            INIT,
            START,
            Update((ONE,), announce={"bogus": 1}),
            START,
            Update((TWO,)),
            FINISH,
            Holds((renamed(TWO, ONE.data),)),
        ),
        "mismatch",
        RECEIVE,
        applies_to=ONLY_0_32,
        needs=DIGESTS,
        tags=ON_PLANE,
    ),
    Case(
        "PLANE-023",
        "the broadcast of an update whose body was refused becomes the next bucket of the same session",
        (
            INIT,
            START,
            Update((TWO,), drop=("names", "dtype_names", "shapes"), beside={"update_info": None}),
            Update((ONE,)),
            FINISH,
            Holds((renamed(ONE, TWO.data),)),
        ),
        "mismatch",
        RECEIVE,
        applies_to=ONLY_0_32,
        needs=DIGESTS,
        tags=ON_PLANE,
    ),
    Case(
        "PLANE-024",
        "the broadcast of a refused update of another size blocks the next session's",
        (
            INIT,
            START,
            Update((LONG,), announce={"bogus": 1}),
            START,
            Begin("update", Update((ONE,))),
            StillPending(("update",)),
            Healthy(),
            LeaveGroup(),
            AnswerOf("update", wording=False),
            START,
            FINISH,
        ),
        "mismatch",
        RECEIVE,
        applies_to=ONLY_0_32,
        needs=PLANE,
        tags=ON_PLANE,
    ),
]
