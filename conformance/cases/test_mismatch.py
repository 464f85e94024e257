"""Sender and receiver disagree about what travels: it must hang like a collective, die of nothing, and be escapable.

All of this is seen over the TCP plane: it is evidence about the server's code, not about what NCCL does.
"""

from conformance.case import Case
from conformance.cases.common import (
    DIGESTS,
    FINISH,
    FIRST_RELEASE,
    INIT,
    NCCL_ENGINE,
    ON_PLANE,
    PACKED,
    PLANE,
    START,
    ignored,
)
from conformance.check import check_case as test_case
from conformance.steps import (
    AnswerOf,
    Begin,
    Broadcast,
    Healthy,
    Holds,
    LeaveGroup,
    Step,
    StillPending,
    Update,
)
from conformance.tensor import Tensor

__all__ = ["CASES", "test_case"]

SOURCE = f"{NCCL_ENGINE}.receive_weights"
ONE = ignored("plane.one", "float32", 16)
TWO = ignored("plane.two", "float32", 16)
LONG = ignored("plane.long", "float32", 32)
SHORT = ignored("plane.short", "float32", 8)
NEXT = ignored("plane.next", "float32", 4)


def hangs(number: int, sentence: str, update: Update, source: str = SOURCE) -> Case:
    """The update stays pending, the process answers, the trainer leaves, the call fails; a new group works."""
    steps: tuple[Step, ...] = (
        INIT,
        START,
        Begin("update", update),
        StillPending(("update",)),
        Healthy(),
        LeaveGroup(),
        AnswerOf("update", wording=False),
        START,
        FINISH,
        INIT,
        START,
        Update((NEXT,), beside={"case": number}),
        FINISH,
        Holds((NEXT,)),
    )
    return Case(f"PLANE-{number:03}", sentence, steps, "mismatch", source, needs=DIGESTS, tags=ON_PLANE)


def leaves(number: int, sentence: str, update: Update, *before: Step, reason: str | None = None) -> Case:
    """The trainer leaves at some point of an update, which then fails at once."""
    steps: tuple[Step, ...] = (
        INIT,
        START,
        Begin("update", update),
        *before,
        LeaveGroup(reason),
        AnswerOf("update", wording=False),
        START,
        FINISH,
        INIT,
    )
    return Case(f"PLANE-{number:03}", sentence, steps, "mismatch", SOURCE, needs=PLANE, tags=ON_PLANE)


def of(*tensors: Tensor, sends: tuple[bytes, ...], packed: bool = False, buffer_bytes: int | None = None) -> Update:
    """An update of these tensors that really broadcasts ``sends``."""
    return Update(tensors, packed, buffer_bytes, broadcasts=sends)


CASES = [
    hangs(1, "fewer bytes are announced than sent (plain)", of(ONE, sends=(LONG.data,))),
    hangs(2, "fewer bytes are announced than sent (packed)", of(ONE, sends=(LONG.data,), packed=True), PACKED),
    hangs(3, "more bytes are announced than sent (plain)", of(TWO, sends=(SHORT.data,))),
    hangs(4, "more bytes are announced than sent (packed)", of(TWO, sends=(SHORT.data,), packed=True), PACKED),
    hangs(5, "more tensors are announced than sent (plain)", of(ONE, TWO, sends=(ONE.data,))),
    hangs(
        6,
        "more tensors are announced than sent (packed, in buffers of their own)",
        of(ONE, TWO, sends=(ONE.data,), packed=True, buffer_bytes=32),
        PACKED,
    ),
    hangs(
        7,
        "sender and server cut their packed buffers differently",
        of(ONE, TWO, sends=(ONE.data + TWO.data,), packed=True, buffer_bytes=16),
        PACKED,
    ),
    hangs(
        8,
        "the server unpacks what the sender sends tensor by tensor",
        of(ONE, TWO, sends=(ONE.data, TWO.data), packed=True),
        PACKED,
    ),
    hangs(9, "the sender packs what the server takes tensor by tensor", of(ONE, TWO, sends=(ONE.data + TWO.data,))),
    hangs(10, "a broadcast of nothing where bytes are due", of(SHORT, sends=(b"",))),
    Case(
        "PLANE-011",
        "fewer tensors are announced than sent (plain): the rest becomes the next bucket, without an error",
        (
            INIT,
            START,
            of(ONE, sends=(ONE.data, TWO.data)),
            of(ignored("plane.three", "float32", 16), sends=()),
            FINISH,
            Holds((Tensor("model.nope.plane.three", "float32", (16,), TWO.data),)),
        ),
        "mismatch",
        SOURCE,
        needs=DIGESTS,
        tags=ON_PLANE,
    ),
    Case(
        "PLANE-012",
        "fewer tensors are announced than sent (packed): the rest becomes the next bucket, without an error",
        (
            INIT,
            START,
            of(ONE, sends=(ONE.data, TWO.data), packed=True),
            of(ignored("plane.four", "float32", 16), sends=(), packed=True),
            FINISH,
            Holds((Tensor("model.nope.plane.four", "float32", (16,), TWO.data),)),
        ),
        "mismatch",
        PACKED,
        needs=DIGESTS,
        tags=ON_PLANE,
    ),
    Case(
        "PLANE-013",
        "the broadcast of a refused update becomes the next bucket, without an error",
        (
            INIT,
            START,
            Update((ONE,), announce={"bogus": 1}),
            Update((TWO,)),
            FINISH,
            Holds((Tensor(TWO.name, TWO.dtype, TWO.shape, ONE.data),)),
        ),
        "mismatch",
        SOURCE,
        needs=DIGESTS,
        tags=ON_PLANE,
        applies_to=FIRST_RELEASE,
    ),
    Case(
        "PLANE-014",
        "the broadcast of an update that was refused for its body becomes the next bucket as well",
        (
            INIT,
            START,
            Begin("refused", Update((TWO,), announce={"names": "x" * 3})),
            AnswerOf("refused"),
            Update((ONE,)),
            FINISH,
            Holds((Tensor(ONE.name, ONE.dtype, ONE.shape, TWO.data),)),
        ),
        "mismatch",
        SOURCE,
        needs=DIGESTS,
        tags=ON_PLANE,
        applies_to=FIRST_RELEASE,
    ),
    Case(
        "PLANE-015",
        "the broadcast of a refused update of another size blocks the next one",
        (
            INIT,
            START,
            Update((LONG,), announce={"bogus": 1}),
            Begin("update", Update((ONE,))),
            StillPending(("update",)),
            Healthy(),
            LeaveGroup(),
            AnswerOf("update", wording=False),
            FINISH,
        ),
        "mismatch",
        SOURCE,
        needs=PLANE,
        tags=ON_PLANE,
        applies_to=FIRST_RELEASE,
    ),
    leaves(16, "the trainer leaves before the broadcast", of(ONE, sends=()), StillPending(("update",), 0.1)),
    leaves(
        17,
        "the trainer leaves in the middle of a broadcast",
        of(LONG, sends=()),
        Broadcast(LONG.data, only=50),
        StillPending(("update",), 0.1),
    ),
    leaves(18, "the trainer leaves between two tensors", of(ONE, TWO, LONG, sends=(ONE.data, TWO.data))),
    leaves(
        19,
        "the trainer leaves in the middle of a packed buffer",
        of(ONE, TWO, sends=(), packed=True),
        Broadcast(ONE.data + TWO.data, only=100),
    ),
    leaves(20, "the trainer aborts with a reason", of(SHORT, ONE, sends=(SHORT.data,)), reason="the trainer failed"),
    Case(
        "PLANE-021",
        "the trainer has left before the update began",
        (INIT, LeaveGroup(), START, Update((ONE, LONG), broadcasts=(), wording=False), FINISH, INIT),
        "mismatch",
        SOURCE,
        needs=PLANE,
        tags=ON_PLANE,
    ),
]
