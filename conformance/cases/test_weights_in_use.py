"""What the server uses, told by its completions: relations only, since processors differ in the tokens themselves."""

from conformance.case import Case
from conformance.cases.common import CHECKED, FINISH, INIT, MODEL, NCCL_ENGINE, START, bare_post, parameter, post, sync
from conformance.check import check_case as test_case
from conformance.steps import Step, Tokens, Update

__all__ = ["CASES", "test_case"]

SOURCE = f"{NCCL_ENGINE}.receive_weights, vllm.model_executor.model_loader.reload"
FLUSH = bare_post("/reset_prefix_cache")


def used(number: int, sentence: str, *steps: Step) -> Case:
    """A case whose completions say which weights are in use."""
    return Case(
        f"SYNC-{number:03}", sentence, (INIT, *steps), "weights-in-use", SOURCE, needs=MODEL | CHECKED | {"completions"}
    )


CASES = [
    used(
        17,
        "A, B, A: completions change with the weights and come back with them",
        *sync("A"),
        FLUSH,
        Tokens("A"),
        *sync("B"),
        FLUSH,
        Tokens("B"),
        *sync("A"),
        FLUSH,
        Tokens("A again"),
    ),
    used(
        18,
        "the same tensor twice in a session: which of the two is held",
        *sync("B"),
        START,
        Update((parameter("lm_head.weight", "A"),)),
        FINISH,
        FLUSH,
        Tokens("B with the head of A"),
        *sync("B"),
        FLUSH,
        Tokens("B"),
        START,
        Update((parameter("lm_head.weight", "A"),)),
        Update((parameter("lm_head.weight", "B"),)),
        FINISH,
        FLUSH,
        Tokens("the head of A, then that of B"),
    ),
    used(
        19,
        "an empty session, and one that failed before any tensor, change nothing",
        *sync("A", bucket=12),
        FLUSH,
        Tokens("A"),
        START,
        FINISH,
        Tokens("after an empty session"),
        START,
        post("/update_weights", {"update_info": {"bogus": "tokens"}}),
        FINISH,
        START,
        FINISH,
        Tokens("after a failed one"),
    ),
]
