"""Buckets at their boundaries: sizes against the packed buffer, and what is in them."""

from conformance.case import Case
from conformance.cases.common import (
    CHECKED,
    DIGESTS,
    FINISH,
    INIT,
    MODEL,
    NCCL_ENGINE,
    PACKED,
    PLANE,
    START,
    filled,
    ignored,
    parameter,
    plain_and_packed,
    session,
)
from conformance.check import check_case as test_case
from conformance.steps import ModelEquals, ReceivedEqualsSent, Update
from conformance.strided import columns
from conformance.tensor import Tensor
from conformance.tiny_model import tensors

__all__ = ["CASES", "test_case"]

SOURCE = f"{NCCL_ENGINE}.receive_weights, {PACKED}"


def sized(label: str, *sizes: int) -> tuple[Tensor, ...]:
    """uint8 tensors of these sizes in bytes."""
    return tuple(ignored(f"{label}.{index}", "uint8", size) for index, size in enumerate(sizes))


def arrives(number: int, sentence: str, items: tuple[Tensor, ...], buffer_bytes: int | None = None) -> list[Case]:
    """A bucket that arrives byte for byte, plain (odd number) and packed (the next one).

    The plain form announces the buffer's size as well, which must change nothing.
    """
    steps = (*session(Update(items, buffer_bytes=buffer_bytes)), ReceivedEqualsSent())
    plain = Case(f"BUCKET-{number:03}", sentence, steps, "bucket", SOURCE, needs=DIGESTS)
    return plain_and_packed(plain, f"BUCKET-{number + 1:03}")


def plain_or_packed(number: int, sentence: str, items: tuple[Tensor, ...]) -> list[Case]:
    """A bucket that a release takes in one form and refuses in the other: the truth says which."""
    case = Case(f"BUCKET-{number:03}", sentence, session(Update(items)), "bucket", SOURCE, needs=PLANE)
    return plain_and_packed(case, f"BUCKET-{number + 1:03}")


# A view of every second column of a larger matrix, gathered as a sender must: the bytes in between do not travel.
STRIDED = columns(filled("model.nope.strided", "float32", 6, 8), every=2)

CASES = [
    *arrives(1, "one tensor larger than the buffer", sized("larger", 100), 64),
    *arrives(3, "a tensor larger than the buffer between small ones", sized("between", 10, 100, 10), 64),
    *arrives(5, "a sum exactly equal to the buffer is not sent yet", sized("equal", 32, 32), 64),
    *arrives(7, "an exactly full buffer takes one more tensor", sized("full", 16, 16, 8, 24), 16),
    *arrives(9, "a buffer of one byte", sized("one", 1, 1, 2, 1), 1),
    *arrives(11, "a sum one byte below the buffer, and one above", sized("around", 63, 2, 64, 1), 64),
    *arrives(13, "many small tensors in one buffer", sized("many", *range(1, 33)), 4096),
    *plain_and_packed(
        Case(
            "BUCKET-015",
            "a bucket of nothing inside a session",
            session(Update(buffer_bytes=64)),
            "empty-lists",
            SOURCE,
            needs=PLANE,
        ),
        "BUCKET-016",
    ),
    *plain_or_packed(17, "a tensor without elements", (ignored("empty", "float32", 0, 4),)),
    *plain_or_packed(
        19,
        "a tensor without elements between others",
        (ignored("before", "float32", 2), ignored("hole", "bfloat16", 3, 0), ignored("after", "float32", 2)),
    ),
    *plain_or_packed(21, "a tensor without dimensions", (ignored("scalar", "float32"),)),
    *plain_or_packed(
        23,
        "a tensor without dimensions after another",
        (ignored("vector", "float32", 4), ignored("zero_dim", "bfloat16")),
    ),
    *arrives(25, "bfloat16", (ignored("bf16", "bfloat16", 3, 5),)),
    *arrives(27, "float16", (ignored("fp16", "float16", 3, 5),)),
    *arrives(29, "float64", (ignored("fp64", "float64", 3, 5),)),
    *plain_or_packed(31, "float8_e4m3fn", (ignored("e4m3", "float8_e4m3fn", 3, 5),)),
    *plain_or_packed(33, "float8_e5m2", (ignored("e5m2", "float8_e5m2", 3, 5),)),
    *arrives(35, "int8", (ignored("i8", "int8", 3, 5),)),
    *arrives(37, "uint8", (ignored("u8", "uint8", 3, 5),)),
    *arrives(39, "int32", (ignored("i32", "int32", 3, 5),)),
    *arrives(41, "int64", (ignored("i64", "int64", 3, 5),)),
    *plain_or_packed(43, "int16", (ignored("i16", "int16", 3, 5),)),
    *plain_or_packed(45, "bool", (ignored("bool", "bool", 3, 5),)),
    *arrives(47, "a source that is not contiguous", (STRIDED, ignored("beside", "float32", 4))),
    *plain_or_packed(
        49,
        "an offset that is no multiple of the item's size: 3 bytes before bfloat16",
        (ignored("odd", "uint8", 3), ignored("shifted", "bfloat16", 4)),
    ),
    *plain_or_packed(
        51,
        "4 bytes before float64",
        (ignored("four", "float32", 1), ignored("eight", "float64", 2)),
    ),
    *plain_or_packed(
        53,
        "an odd tensor at the end disturbs nobody",
        (ignored("even", "bfloat16", 4), ignored("last", "float8_e4m3fn", 3)),
    ),
    *arrives(
        55,
        "dtypes mixed, widest first",
        (
            ignored("mixed.f64", "float64", 2),
            ignored("mixed.i64", "int64", 2),
            ignored("mixed.f32", "float32", 3),
            ignored("mixed.bf16", "bfloat16", 4),
            ignored("mixed.i8", "int8", 7),
        ),
    ),
    *plain_and_packed(
        Case(
            "BUCKET-057",
            "cuts restart with every update",
            (
                *session(
                    Update(sized("restart", 40), buffer_bytes=64), Update(sized("again", 40, 30), buffer_bytes=64)
                ),
                ReceivedEqualsSent(),
            ),
            "bucket",
            PACKED,
            needs=DIGESTS,
        ),
        "BUCKET-058",
    ),
    *plain_and_packed(
        Case(
            "BUCKET-059",
            "a whole checkpoint whose largest tensor is larger than the buffer",
            (INIT, START, Update(tensors("B"), buffer_bytes=50_000), FINISH, ModelEquals("B")),
            "bucket",
            PACKED,
            needs=MODEL,
        ),
        "BUCKET-060",
    ),
    *plain_and_packed(
        Case(
            "BUCKET-061",
            "a tensor of the model among ignored ones of other dtypes",
            (
                *session(
                    Update((ignored("pad", "float64", 1), parameter("lm_head.weight"), ignored("tail", "int8", 5)))
                ),
                ReceivedEqualsSent(),
            ),
            "bucket",
            PACKED,
            needs=MODEL,
        ),
        "BUCKET-062",
    ),
    *plain_and_packed(
        Case(
            "BUCKET-063",
            "the same name twice in one bucket",
            session(Update((parameter("model.norm.weight", "A"), parameter("model.norm.weight", "B")))),
            "bucket",
            PACKED,
            needs=CHECKED,
        ),
        "BUCKET-064",
    ),
]
