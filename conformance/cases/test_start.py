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
    Case("START-005", "a start without a body", (bare_post(START_PATH), FINISH), "invalid-json", SOURCE),
    Case("START-006", "a start with malformed JSON", (post_raw(START_PATH, b"{bad"), FINISH), "invalid-json", SOURCE),
    Case("START-007", "a list as the body of a start", (post(START_PATH, [1]), FINISH), "body-not-an-object", SOURCE),
    Case(
        "START-008", "a text as the body of a start", (post(START_PATH, "text"), FINISH), "body-not-an-object", SOURCE
    ),
    Case("START-009", "null as the body of a start", (post(START_PATH, None), FINISH), "body-not-an-object", SOURCE),
    Case("START-010", "true as the body of a start", (post(START_PATH, True), FINISH), "body-not-an-object", SOURCE),
    Case(
        "START-011",
        "a start with invalid UTF-8",
        (post_raw(START_PATH, b'{"a": "\xff"}'), FINISH),
        "encoding",
        SOURCE,
    ),
    Case("START-012", "a start sent as text/plain", (typed("text/plain"), FINISH), "content-type", SOURCE),
    Case("START-013", "a start without a content type", (typed(None), FINISH), "content-type", SOURCE),
    Case(
        "START-014",
        "a start sent as a form",
        (typed("application/x-www-form-urlencoded"), FINISH),
        "content-type",
        SOURCE,
    ),
    Case(
        "START-015",
        "a byte order mark before the JSON of a start",
        (post_raw(START_PATH, b"\xef\xbb\xbf{}"), FINISH),
        "encoding",
        SOURCE,
    ),
    Case(
        "START-016",
        "a start in UTF-16",
        (post_raw(START_PATH, '{"is_checkpoint_format": true}'.encode("utf-16-le")), FINISH),
        "encoding",
        SOURCE,
    ),
    Case(
        "START-017",
        "bytes after the JSON of a start",
        (post_raw(START_PATH, b"{} {}"), FINISH),
        "invalid-json",
        SOURCE,
    ),
    Case(
        "START-018",
        "is_checkpoint_format null, then a name that only the checkpoint's format ignores",
        (INIT, *kernel(None), FINISH),
        "start-format",
        FORMAT,
        needs=CHECKED,
    ),
    Case(
        "START-019",
        "is_checkpoint_format a text, then a name that only the checkpoint's format ignores",
        (INIT, *kernel("false"), FINISH),
        "start-format",
        FORMAT,
        needs=CHECKED,
    ),
    Case(
        "START-020",
        "is_checkpoint_format 0, then a name that only the checkpoint's format ignores",
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
        "is_checkpoint_format false, then the embedding under its name in the model",
        (INIT, START_KERNEL, Update((parameter("model.embed_tokens.weight"),)), FINISH, ReceivedEqualsSent()),
        "start-format",
        FORMAT,
        needs=MODEL,
    ),
    Case(
        "START-023",
        "is_checkpoint_format false, then a part that the model keeps fused",
        (INIT, START_KERNEL, Update((parameter("model.layers.0.self_attn.q_proj.weight"),)), FINISH),
        "start-format",
        FORMAT,
        needs=CHECKED,
    ),
    Case(
        "START-024",
        "is_checkpoint_format false, then a good tensor and an unknown name",
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
        "a start that says is_checkpoint_format twice",
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
