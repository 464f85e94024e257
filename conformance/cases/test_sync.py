"""Full syncs of the tiny model, proven by the digests of what the server received."""

from conformance.case import Case
from conformance.cases.common import (
    FINISH,
    FIRST_RELEASE,
    INIT,
    MODEL,
    NCCL_ENGINE,
    PACKED,
    RELEASES,
    START,
    START_PATH,
    bucketed,
    parameter,
    plain_and_packed,
    post,
    sync,
)
from conformance.check import check_case as test_case
from conformance.steps import Holds, ModelEquals, ReceivedEqualsSent, Step, Update
from conformance.tiny_model import tensors

__all__ = ["CASES", "test_case"]

SOURCE = f"{NCCL_ENGINE}.receive_weights"


def full(
    number: int, sentence: str, *steps: Step, source: str = SOURCE, applies_to: tuple[str, ...] = RELEASES
) -> Case:
    """A case about whole checkpoints."""
    return Case(f"SYNC-{number:03}", sentence, (INIT, *steps), "sync", source, applies_to=applies_to, needs=MODEL)


CASES = [
    *plain_and_packed(
        full(1, "A, then B, then A again, each whole and byte for byte", *sync("A"), *sync("B"), *sync("A")), "SYNC-002"
    ),
    full(
        3,
        "A, B, A in many small packed buffers",
        *(step for name in "ABA" for step in sync(name, 25, True, 20_000)),
        source=PACKED,
    ),
    full(4, "one tensor a bucket", *sync("B", bucket=1)),
    full(5, "one tensor a bucket, packed", *sync("A", bucket=1, packed=True), source=PACKED),
    full(6, "buckets of seven tensors, the last one smaller", *sync("B", bucket=7)),
    full(7, "buckets of seven tensors, packed with cuts inside them", *sync("A", 7, True, 40_000), source=PACKED),
    full(
        8,
        "plain and packed buckets in one session",
        START,
        *(Update(part, packed=index % 2 == 1) for index, part in enumerate(bucketed(tensors("B"), 5))),
        FINISH,
        ModelEquals("B"),
        applies_to=FIRST_RELEASE,
    ),
    full(9, "the order of the tensors does not matter", START, Update(tensors("B")[::-1]), FINISH, ModelEquals("B")),
    full(
        10,
        "part of a checkpoint: only those tensors arrive, the session closes",
        START,
        Update((parameter("lm_head.weight"), parameter("model.norm.weight"))),
        FINISH,
        ReceivedEqualsSent(),
    ),
    full(
        11,
        "a part of B over a whole A leaves a mixture, and no error",
        *sync("A"),
        START,
        Update((parameter("lm_head.weight"),), packed=True),
        FINISH,
        Holds((parameter("lm_head.weight", "B"), parameter("model.norm.weight", "A"))),
        applies_to=FIRST_RELEASE,
    ),
    full(
        12,
        "the same tensor twice in a session: both are received, the second last (a complete layer keeps the first)",
        START,
        Update((parameter("lm_head.weight", "A"),)),
        Update((parameter("lm_head.weight", "B"),)),
        FINISH,
        Holds((parameter("lm_head.weight", "B"),)),
    ),
    full(
        13,
        "a new group between two syncs",
        *sync("A", bucket=13),
        INIT,
        *sync("B", bucket=13),
    ),
    full(
        14,
        "a full sync in the checkpoint's format, said aloud",
        post(START_PATH, {"is_checkpoint_format": True}),
        Update(tensors("B"), packed=True, buffer_bytes=100_000),
        FINISH,
        ModelEquals("B"),
        source=PACKED,
    ),
    full(
        15,
        "a session of nothing between two syncs changes nothing",
        *sync("B", 9),
        START,
        FINISH,
        ModelEquals("B"),
        *sync("A", 9),
    ),
]
