"""``/pause``, ``/resume`` and ``/is_paused``."""

from conformance.case import Case
from conformance.cases.common import (
    FINISH,
    INIT,
    IS_PAUSED,
    MODEL,
    RESUME,
    ROUTER,
    START,
    bare_post,
    post,
    post_raw,
    sync,
)
from conformance.check import check_case as test_case
from conformance.steps import Call, Step

__all__ = ["CASES", "test_case"]

SOURCE = f"{ROUTER}.pause_generation"


def pauses(number: int, sentence: str, *requests: Step) -> Case:
    """Requests, then whether the server is paused, then resume."""
    return Case(f"PAUSE-{number:03}", sentence, (*requests, IS_PAUSED, RESUME, IS_PAUSED), "pause", SOURCE)


def refuses(number: int, sentence: str, query: str, requirement: str = "pause-bad-mode") -> Case:
    """A pause that is refused and leaves the server running."""
    return Case(f"PAUSE-{number:03}", sentence, (bare_post(f"/pause?{query}"), IS_PAUSED), requirement, SOURCE)


CASES = [
    pauses(1, "pause without parameters", bare_post("/pause")),
    pauses(2, "mode abort", bare_post("/pause?mode=abort")),
    pauses(3, "mode wait", bare_post("/pause?mode=wait")),
    pauses(4, "mode keep", bare_post("/pause?mode=keep")),
    pauses(5, "keep the cache", bare_post("/pause?mode=keep&clear_cache=false")),
    pauses(6, "clear the cache", bare_post("/pause?clear_cache=true")),
    pauses(7, "wait for running requests, the old way", bare_post("/pause?wait_for_inflight_requests=true")),
    pauses(8, "every parameter at once", bare_post("/pause?mode=wait&clear_cache=0&wait_for_inflight_requests=no")),
    refuses(9, "an unknown mode is refused", "mode=bogus"),
    refuses(10, "an empty mode is refused", "mode="),
    refuses(11, "modes are lower case", "mode=KEEP"),
    refuses(12, "clear_cache must be a boolean", "clear_cache=maybe", "pause"),
    refuses(13, "a wait_for_inflight_requests that is no boolean", "wait_for_inflight_requests=2", "pause"),
    refuses(14, "two bad parameters are both named", "mode=bogus&clear_cache=maybe", "pause"),
    pauses(15, "of two modes the last one counts", bare_post("/pause?mode=bogus&mode=keep")),
    pauses(16, "unknown parameters are ignored", bare_post("/pause?level=1")),
    pauses(17, "pausing twice", bare_post("/pause"), bare_post("/pause")),
    pauses(18, "pausing again in another mode", bare_post("/pause?mode=keep"), bare_post("/pause?mode=abort")),
    Case("PAUSE-019", "resume when not paused", (RESUME, IS_PAUSED), "pause", f"{ROUTER}.resume_generation"),
    Case(
        "PAUSE-020",
        "resuming twice",
        (bare_post("/pause"), RESUME, RESUME, IS_PAUSED),
        "pause",
        f"{ROUTER}.resume_generation",
    ),
    pauses(21, "a malformed body is ignored", post_raw("/pause", b"{bad")),
    pauses(22, "a mode in the body is ignored", post("/pause", {"mode": "bogus"})),
    Case(
        "PAUSE-023",
        "resume ignores its body",
        (bare_post("/pause"), post_raw("/resume", b"[1"), IS_PAUSED),
        "body-ignored",
        f"{ROUTER}.resume_generation",
    ),
    Case(
        "PAUSE-024",
        "is_paused ignores its query",
        (Call("GET", "/is_paused?mode=keep"),),
        "pause",
        f"{ROUTER}.is_paused",
    ),
    Case(
        "PAUSE-025",
        "a session neither pauses nor resumes",
        (bare_post("/pause?mode=keep"), START, IS_PAUSED, FINISH, IS_PAUSED, RESUME),
        "pause",
        SOURCE,
    ),
    Case(
        "PAUSE-026",
        "the trainer's way: pause, flush, a full sync, resume",
        (INIT, bare_post("/pause?mode=keep"), bare_post("/reset_prefix_cache"), *sync("B"), RESUME, IS_PAUSED),
        "sync",
        SOURCE,
        needs=MODEL,
    ),
    Case(
        "PAUSE-027",
        "sleep at level 0 pauses, wake_up resumes",
        (
            bare_post("/sleep?level=0"),
            IS_PAUSED,
            Call("GET", "/is_sleeping"),
            bare_post("/wake_up"),
            IS_PAUSED,
            Call("GET", "/is_sleeping"),
        ),
        "empty-answer",
        "vllm.entrypoints.serve.sleep.api_router.sleep",
        level="platform",
    ),
]
