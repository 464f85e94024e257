"""The order of start, update and finish, and what else does or does not touch a session."""

from conformance.case import Case
from conformance.cases.common import (
    EMPTY_UPDATE,
    FINISH,
    INIT,
    IS_PAUSED,
    PLANE,
    RESUME,
    ROUTER,
    START,
    START_KERNEL,
    START_PATH,
    UPDATE_PATH,
    WORKER,
    bare_post,
    ignored,
    post,
    post_raw,
)
from conformance.check import check_case as test_case
from conformance.steps import Call, Update

__all__ = ["CASES", "test_case"]

START_RULE = f"{WORKER}.start_weight_update"
UPDATE_RULE = f"{WORKER}.update_weights"
FINISH_RULE = f"{WORKER}.finish_weight_update"
SMALL = Update((ignored("order", "float32", 2),), broadcasts=())
TRUE_START = post(START_PATH, {"is_checkpoint_format": True})

CASES = [
    Case("ORDER-001", "a second start is refused", (START, START, FINISH), "start-while-active", START_RULE),
    Case("ORDER-002", "an update without a session is refused", (SMALL,), "update-while-idle", UPDATE_RULE),
    Case("ORDER-003", "a finish without a session is refused", (FINISH,), "finish-while-idle", FINISH_RULE),
    Case(
        "ORDER-004",
        "an update_info that is text, without a session",
        (post(UPDATE_PATH, {"update_info": "str"}),),
        "order-before-type",
        UPDATE_RULE,
    ),
    Case(
        "ORDER-005",
        "an unknown key, without a session: the order error comes first",
        (post(UPDATE_PATH, {"update_info": {"bogus": 1}}),),
        "order-before-type",
        UPDATE_RULE,
    ),
    Case(
        "ORDER-006",
        "a missing update_info, without a session: the body is judged first",
        (post(UPDATE_PATH, {"info": {}}),),
        "missing-info",
        f"{ROUTER}.update_weights",
    ),
    Case("ORDER-007", "a second finish is refused", (START, FINISH, FINISH), "finish-while-idle", FINISH_RULE),
    Case(
        "ORDER-008",
        "an update after the finish is refused",
        (START, FINISH, EMPTY_UPDATE),
        "update-while-idle",
        UPDATE_RULE,
    ),
    Case("ORDER-009", "sessions follow each other", (START, FINISH, START, FINISH), "session-order", START_RULE),
    Case(
        "ORDER-010",
        "two refused starts leave one session, which one finish closes",
        (START, START, START, FINISH, FINISH),
        "start-while-active",
        START_RULE,
    ),
    Case(
        "ORDER-011",
        "a start in the other format is refused as well",
        (START, START_KERNEL, FINISH),
        "start-while-active",
        START_RULE,
    ),
    Case(
        "ORDER-012",
        "a refused start does not change the session's format",
        (INIT, TRUE_START, START_KERNEL, Update((ignored("order.format", "float32", 2),)), FINISH),
        "start-while-active",
        START_RULE,
        needs=frozenset({*PLANE, "checked model"}),
    ),
    Case(
        "ORDER-013",
        "a start with malformed JSON inside a session",
        (START, post_raw(START_PATH, b"{bad"), FINISH, FINISH),
        "session-order",
        f"{ROUTER}.start_weight_update",
    ),
    Case(
        "ORDER-014",
        "a start without a body inside a session",
        (START, bare_post(START_PATH), FINISH),
        "session-order",
        f"{ROUTER}.start_weight_update",
    ),
    Case(
        "ORDER-015",
        "malformed JSON on update leaves an open session alone",
        (START, post_raw(UPDATE_PATH, b"["), FINISH, FINISH),
        "session-order",
        f"{ROUTER}.update_weights",
    ),
    Case(
        "ORDER-016",
        "an update is possible after one that was refused for its body",
        (INIT, START, post(UPDATE_PATH, {}), EMPTY_UPDATE, FINISH),
        "session-order",
        UPDATE_RULE,
        needs=PLANE,
    ),
    Case(
        "ORDER-017",
        "an init keeps an open session",
        (START, INIT, START, FINISH),
        "session-order",
        f"{WORKER}.init_weight_transfer_engine",
        needs=PLANE,
    ),
    Case(
        "ORDER-018",
        "pause and resume keep an open session",
        (START, bare_post("/pause"), RESUME, START, FINISH),
        "session-order",
        START_RULE,
    ),
    Case(
        "ORDER-019",
        "a flush keeps an open session",
        (START, bare_post("/reset_prefix_cache"), START, FINISH),
        "session-order",
        START_RULE,
    ),
    Case(
        "ORDER-020",
        "no release asks for a pause: a session opens and closes while requests are served",
        (IS_PAUSED, START, IS_PAUSED, FINISH, IS_PAUSED),
        "session-order",
        START_RULE,
    ),
    Case(
        "ORDER-021",
        "a finish on another connection than the start",
        (START, Call("POST", UPDATE_PATH, json={"update_info": {"bogus": 2}}), FINISH),
        "session-order",
        FINISH_RULE,
    ),
]
