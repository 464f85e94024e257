"""``POST /start_weight_update``: its body, and the two formats."""

from conformance.case import Case
from conformance.cases.common import (
    CHECKED,
    DIGESTS,
    FINISH,
    INIT,
    MODEL,
    ROUTER,
    START,
    START_KERNEL,
    START_PATH,
    WORKER,
    bare_post,
    ignored,
    parameter,
    post,
    post_raw,
)
from conformance.check import check_case as test_case
from conformance.steps import Call, ReceivedEqualsSent, Update

__all__ = ["CASES", "test_case"]

SOURCE = f"{ROUTER}.start_weight_update"
FORMAT = f"{WORKER}.start_weight_update"


def typed(content_type: str | None) -> Call:
    """A good start under another content type."""
    return Call("POST", START_PATH, json={"is_checkpoint_format": True}, content_type=content_type)


def kernel(value: object) -> tuple[Call, Update]:
    """A start with this is_checkpoint_format, and an update that only the checkpoint format accepts."""
    return post(START_PATH, {"is_checkpoint_format": value}), Update((ignored("start.format", "float32", 2),))


CASES = [
    Case("START-001", "an empty object opens a session", (START, FINISH), "start-format", SOURCE),
    Case(
        "START-002",
        "is_checkpoint_format true opens a session",
        (post(START_PATH, {"is_checkpoint_format": True}), FINISH),
        "start-format",
        SOURCE,
    ),
    Case("START-003", "is_checkpoint_format false opens a session", (START_KERNEL, FINISH), "start-format", SOURCE),
    Case(
        "START-004",
        "unknown keys are ignored",
        (post(START_PATH, {"unknown": 1, "packed": True}), FINISH),
        "unknown-top-level-key",
        SOURCE,
    ),
    Case(
        "START-005", "no body is refused and opens no session", (bare_post(START_PATH), FINISH), "invalid-json", SOURCE
    ),
    Case(
        "START-006", "malformed JSON opens no session", (post_raw(START_PATH, b"{bad"), FINISH), "invalid-json", SOURCE
    ),
    Case("START-007", "a list opens no session", (post(START_PATH, [1]), FINISH), "body-not-an-object", SOURCE),
    Case("START-008", "a string opens no session", (post(START_PATH, "text"), FINISH), "body-not-an-object", SOURCE),
    Case("START-009", "null opens no session", (post(START_PATH, None), FINISH), "body-not-an-object", SOURCE),
    Case("START-010", "true opens no session", (post(START_PATH, True), FINISH), "body-not-an-object", SOURCE),
    Case(
        "START-011",
        "invalid UTF-8 opens no session",
        (post_raw(START_PATH, b'{"a": "\xff"}'), FINISH),
        "encoding",
        SOURCE,
    ),
    Case("START-012", "text/plain is read as JSON", (typed("text/plain"), FINISH), "content-type", SOURCE),
    Case("START-013", "no content type is read as JSON", (typed(None), FINISH), "content-type", SOURCE),
    Case(
        "START-014",
        "a form content type is read as JSON",
        (typed("application/x-www-form-urlencoded"), FINISH),
        "content-type",
        SOURCE,
    ),
    Case(
        "START-015",
        "a byte order mark before the JSON is accepted",
        (post_raw(START_PATH, b"\xef\xbb\xbf{}"), FINISH),
        "encoding",
        SOURCE,
    ),
    Case(
        "START-016",
        "JSON in UTF-16 is accepted",
        (post_raw(START_PATH, '{"is_checkpoint_format": true}'.encode("utf-16-le")), FINISH),
        "encoding",
        SOURCE,
    ),
    Case(
        "START-017",
        "bytes after the JSON are refused",
        (post_raw(START_PATH, b"{} {}"), FINISH),
        "invalid-json",
        SOURCE,
    ),
    Case(
        "START-018",
        "null means the kernel's format, where an unknown name is an error",
        (INIT, *kernel(None), FINISH),
        "start-format",
        FORMAT,
        needs=CHECKED,
    ),
    Case(
        "START-019",
        "any text means the checkpoint's format, where an unknown name is ignored",
        (INIT, *kernel("false"), FINISH),
        "start-format",
        FORMAT,
        needs=CHECKED,
    ),
    Case(
        "START-020",
        "0 means the kernel's format",
        (INIT, *kernel(0), FINISH),
        "start-format",
        FORMAT,
        needs=CHECKED,
    ),
    Case(
        "START-021",
        "the format does not outlast its session",
        (INIT, START_KERNEL, FINISH, START, Update((ignored("start.again", "float32", 2),)), FINISH),
        "start-format",
        FORMAT,
        needs=CHECKED,
    ),
    Case(
        "START-022",
        "the kernel's format takes the embedding under its name in the model",
        (INIT, START_KERNEL, Update((parameter("model.embed_tokens.weight"),)), FINISH, ReceivedEqualsSent()),
        "start-format",
        FORMAT,
        needs=MODEL,
    ),
    Case(
        "START-023",
        "the kernel's format knows no name of a part that the model keeps fused",
        (INIT, START_KERNEL, Update((parameter("model.layers.0.self_attn.q_proj.weight"),)), FINISH),
        "start-format",
        FORMAT,
        needs=CHECKED,
    ),
    Case(
        "START-024",
        "in the kernel's format a good tensor before an unknown name saves nothing",
        (INIT, START_KERNEL, Update((parameter("lm_head.weight"), ignored("start.tail", "float32", 1))), FINISH),
        "start-format",
        FORMAT,
        needs=CHECKED,
    ),
    Case(
        "START-025",
        "a start needs no group",
        (post(START_PATH, {"first": True}), FINISH),
        "session-order",
        FORMAT,
        needs=frozenset({"no group"}),
    ),
    Case(
        "START-026",
        "a duplicate key: the last one counts",
        (
            INIT,
            post_raw(START_PATH, b'{"is_checkpoint_format": false, "is_checkpoint_format": true}'),
            Update((ignored("start.twice", "float32", 2),)),
            FINISH,
            ReceivedEqualsSent(),
        ),
        "encoding",
        SOURCE,
        needs=DIGESTS,
    ),
]
