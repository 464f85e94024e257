"""Routes that came after 0.21.0: the end of a transfer, aborting requests, draft models, checksums of the weights."""

from conformance.case import Case, Need
from conformance.cases.common import (
    FINISH,
    INIT,
    IS_PAUSED,
    LATER_ROUTER,
    MODEL,
    ONLY_0_32,
    PLANE,
    RESUME,
    START,
    UPDATE_PATH,
    bare_post,
    completion,
    dropped,
    post,
    post_raw,
    sync,
)
from conformance.check import check_case as test_case
from conformance.steps import AnswerOf, Begin, Call, ReceivedEqualsSent, Step, StillPending, Update

__all__ = ["CASES", "test_case"]

SHUTDOWN = bare_post("/shutdown_weight_transfer_engine")
ABORT_PATH = "/abort_requests"
CHECKER_PATH = "/weight_checker"
DRAFT = bare_post("/start_draft_weight_update")
CHECKSUM = post(CHECKER_PATH, {"action": "checksum"})
SMALL = Update((dropped("later", "float32", 2),))


def later(
    case_id: str, sentence: str, requirement: str, *steps: Step, needs: frozenset[Need] = frozenset(), route: str
) -> Case:
    """A case of 0.32.0."""
    source = f"{LATER_ROUTER}.{route}"
    return Case(case_id, sentence, steps, requirement, source, applies_to=ONLY_0_32, needs=needs)


def shuts(number: int, sentence: str, *steps: Step, needs: frozenset[Need] = frozenset()) -> Case:
    """A case about the end of a transfer."""
    return later(
        f"SHUTDOWN-{number:03}", sentence, "shutdown", *steps, needs=needs, route="shutdown_weight_transfer_engine"
    )


def aborts(number: int, sentence: str, *steps: Step, needs: frozenset[Need] = frozenset()) -> Case:
    """A case about aborting requests."""
    return later(f"ABORT-{number:03}", sentence, "abort", *steps, needs=needs, route="abort_requests")


def checks(number: int, sentence: str, *steps: Step, needs: frozenset[Need] = frozenset()) -> Case:
    """A case about the checksums of the weights."""
    return later(f"CHECKER-{number:03}", sentence, "weight-checker", *steps, needs=needs, route="weight_checker")


CASES = [
    shuts(1, "a shutdown without a group succeeds, again and again", SHUTDOWN, SHUTDOWN),
    shuts(
        2,
        "after a shutdown an update finds no group, a start needs none",
        INIT,
        SHUTDOWN,
        START,
        SMALL,
        FINISH,
        needs=PLANE,
    ),
    shuts(
        3,
        "a shutdown inside a session is refused, and the session goes on",
        INIT,
        START,
        SHUTDOWN,
        SMALL,
        FINISH,
        ReceivedEqualsSent(),
        needs=MODEL,
    ),
    shuts(4, "a new group after a shutdown", INIT, SHUTDOWN, INIT, *sync("B", bucket=11), SHUTDOWN, needs=MODEL),
    shuts(5, "a shutdown ignores its body", post_raw("/shutdown_weight_transfer_engine", b"{bad")),
    shuts(6, "the wrong method on a shutdown", Call("GET", "/shutdown_weight_transfer_engine")),
    aborts(1, "abort of everything where nothing runs", post(ABORT_PATH, {})),
    aborts(2, "an abort needs a body", bare_post(ABORT_PATH)),
    aborts(3, "an abort's body must be JSON", post_raw(ABORT_PATH, b"{bad")),
    aborts(
        4, "an abort's body must be an object", post(ABORT_PATH, ["x"]), post(ABORT_PATH, None), post(ABORT_PATH, "x")
    ),
    aborts(5, "unknown ids are counted all the same", post(ABORT_PATH, {"request_ids": ["a", "b"]})),
    aborts(6, "no ids mean everything", post(ABORT_PATH, {"request_ids": []}), post(ABORT_PATH, {"request_ids": None})),
    aborts(7, "a text as ids is counted letter by letter", post(ABORT_PATH, {"request_ids": "abc"})),
    aborts(8, "a number as ids", post(ABORT_PATH, {"request_ids": 7})),
    aborts(9, "the content type is ignored", Call("POST", ABORT_PATH, json={}, content_type="text/plain")),
    aborts(
        10,
        "an abort neither pauses nor resumes",
        bare_post("/pause?mode=keep"),
        post(ABORT_PATH, {}),
        IS_PAUSED,
        RESUME,
    ),
    aborts(11, "an abort keeps a session", START, post(ABORT_PATH, {}), START, FINISH),
    aborts(
        12,
        "a request that waits in a pause is aborted",
        bare_post("/pause?mode=keep"),
        Begin("completion", completion(1, 2, 3)),
        StillPending(("completion",)),
        post(ABORT_PATH, {}),
        AnswerOf("completion"),
        RESUME,
        needs=frozenset({"completions"}),
    ),
    later(
        "DRAFT-001",
        "a draft update without a draft model is refused and opens no session",
        "draft",
        DRAFT,
        FINISH,
        route="start_draft_weight_update",
    ),
    later(
        "DRAFT-002",
        "a draft update inside a session is refused and keeps the session",
        "draft",
        START,
        DRAFT,
        FINISH,
        FINISH,
        route="start_draft_weight_update",
    ),
    later(
        "DRAFT-003",
        "a draft start ignores its body",
        "draft",
        post_raw("/start_draft_weight_update", b"{bad"),
        FINISH,
        route="start_draft_weight_update",
    ),
    checks(1, "checksums are given by worker and parameter", INIT, *sync("A"), CHECKSUM, needs=MODEL),
    checks(
        2, "a comparison with nothing names every parameter", post(CHECKER_PATH, {"action": "compare", "baseline": {}})
    ),
    checks(
        3,
        "a comparison names what only the baseline has",
        post(CHECKER_PATH, {"action": "compare", "baseline": {"no.such": "0"}}),
    ),
    checks(4, "a comparison needs a baseline", post(CHECKER_PATH, {"action": "compare"})),
    checks(
        5, "an unknown action is refused", post(CHECKER_PATH, {"action": "bogus"}), post(CHECKER_PATH, {"action": 1})
    ),
    checks(
        6, "an action is required", post(CHECKER_PATH, {}), bare_post(CHECKER_PATH), post_raw(CHECKER_PATH, b"{bad")
    ),
    checks(
        7,
        "a baseline of the wrong type is refused",
        post(CHECKER_PATH, {"action": "compare", "baseline": ["a"]}),
        post(CHECKER_PATH, {"action": "compare", "baseline": {"a": 1}}),
    ),
    checks(8, "inside a session the parameters have no data", START, CHECKSUM, FINISH),
    checks(
        9,
        "after a failed update the parameters have no data, until a session is closed",
        START,
        post(UPDATE_PATH, {"update_info": {"bogus": "checker"}}),
        CHECKSUM,
        START,
        FINISH,
        CHECKSUM,
    ),
    checks(
        10,
        "a reset of the weights, then a full sync",
        post(CHECKER_PATH, {"action": "reset"}),
        INIT,
        *sync("B"),
        needs=MODEL,
    ),
    checks(
        11,
        "the content type must be JSON",
        Call("POST", CHECKER_PATH, json={"action": "checksum"}, content_type="text/plain"),
    ),
]
