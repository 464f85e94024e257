"""``POST /finish_weight_update``: its body, which releases before 0.27 never read."""

from conformance.case import Case
from conformance.cases.common import FINISH, FINISH_PATH, ROUTER, START, WORKER, bare_post, post, post_raw
from conformance.check import check_case as test_case
from conformance.steps import Call, Step

__all__ = ["CASES", "test_case"]

SOURCE = f"{ROUTER}.finish_weight_update"


def closes(number: int, what: str, finish: Step) -> Case:
    """A session, this finish, and another one that tells whether it was closed."""
    return Case(f"FINISH-{number:03}", f"a finish with {what}", (START, finish, FINISH), "finish-body", SOURCE)


CASES = [
    closes(1, "no body", bare_post(FINISH_PATH)),
    closes(2, "malformed JSON", post_raw(FINISH_PATH, b"{bad")),
    closes(3, "a list", post(FINISH_PATH, [1])),
    closes(4, "a string", post(FINISH_PATH, "text")),
    closes(5, "null", post(FINISH_PATH, None)),
    closes(6, "invalid UTF-8", post_raw(FINISH_PATH, b"\xff\xfe")),
    closes(7, "a weight version", post(FINISH_PATH, {"weight_version": "v7"})),
    closes(8, "a weight version of the wrong type", post(FINISH_PATH, {"weight_version": 7})),
    closes(9, "a body of another content type", Call("POST", FINISH_PATH, raw=b"x=1", content_type="text/plain")),
    Case(
        "FINISH-010",
        "a finish with malformed JSON, without a session",
        (post_raw(FINISH_PATH, b"{bad"),),
        "finish-while-idle",
        f"{WORKER}.finish_weight_update",
    ),
    Case(
        "FINISH-011",
        "a finish with a query string",
        (START, post(f"{FINISH_PATH}?weight_version=v1", {}), FINISH),
        "finish-body",
        SOURCE,
    ),
]
