"""What inference does to an open session: with a pause it waits, without one it kills the engine and the server."""

from conformance.case import Case, Need
from conformance.cases.common import FINISH, RESUME, START, UPDATE_PATH, bare_post, completion, post
from conformance.check import check_case as test_case
from conformance.steps import AnswerOf, Begin, Dies, StillPending

__all__ = ["CASES", "test_case"]

SOURCE = "vllm.model_executor.model_loader.reload, vllm.v1.engine.core.EngineCore"
COMPLETES: frozenset[Need] = frozenset({"completions"})

CASES = [
    Case(
        "DEAD-001",
        "a completion inside an open session kills the engine, and the server ends",
        (START, completion(5, 6, 7), Dies()),
        "engine-death",
        SOURCE,
        needs=COMPLETES,
        spoils=True,
    ),
    Case(
        "DEAD-002",
        "a completion after a failed update kills the engine, and the server ends",
        (START, post(UPDATE_PATH, {"update_info": {"bogus": "dead"}}), completion(5, 6, 8), Dies()),
        "engine-death",
        SOURCE,
        needs=COMPLETES,
        spoils=True,
    ),
    Case(
        "DEAD-003",
        "a completion in a pause waits through a session and is answered after the resume",
        (
            bare_post("/pause?mode=keep"),
            START,
            Begin("completion", completion(5, 6, 9)),
            StillPending(("completion",)),
            FINISH,
            StillPending(("completion",), 0.25),
            RESUME,
            AnswerOf("completion"),
        ),
        "engine-death",
        SOURCE,
        needs=COMPLETES,
    ),
    Case(
        "DEAD-004",
        "an empty session after a failed update makes completions safe again",
        (
            START,
            post(UPDATE_PATH, {"update_info": {"bogus": "alive"}}),
            FINISH,
            START,
            FINISH,
            completion(5, 6, 10),
        ),
        "engine-death",
        SOURCE,
        needs=COMPLETES,
    ),
]
