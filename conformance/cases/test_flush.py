"""``POST /reset_prefix_cache``."""

from conformance.case import Case
from conformance.cases.common import FINISH, RESUME, START, bare_post, post, post_raw
from conformance.check import check_case as test_case
from conformance.steps import Step

__all__ = ["CASES", "test_case"]

SOURCE = "vllm.entrypoints.serve.cache.api_router.reset_prefix_cache"
PATH = "/reset_prefix_cache"


def flush(number: int, sentence: str, *steps: Step) -> Case:
    """A flush that succeeds."""
    return Case(f"FLUSH-{number:03}", sentence, steps, "empty-answer", SOURCE)


CASES = [
    flush(1, "a flush", bare_post(PATH)),
    flush(2, "running requests may be preempted", bare_post(f"{PATH}?reset_running_requests=true")),
    flush(3, "an external cache may be reset where there is none", bare_post(f"{PATH}?reset_external=true")),
    flush(4, "both at once", bare_post(f"{PATH}?reset_running_requests=1&reset_external=1")),
    flush(5, "the body is ignored", post_raw(PATH, b"{bad"), post(PATH, {"reset_external": "maybe"})),
    flush(6, "while paused", bare_post("/pause"), bare_post(PATH), RESUME),
    flush(7, "inside a session", START, bare_post(PATH), bare_post(PATH), FINISH),
    flush(8, "unknown parameters are ignored", bare_post(f"{PATH}?level=2")),
    Case(
        "FLUSH-009",
        "a parameter that is no boolean is refused",
        (bare_post(f"{PATH}?reset_running_requests=maybe"),),
        "empty-answer",
        SOURCE,
    ),
    Case(
        "FLUSH-010",
        "two parameters that are no booleans are both named",
        (bare_post(f"{PATH}?reset_running_requests=maybe&reset_external=perhaps"),),
        "empty-answer",
        SOURCE,
    ),
]
