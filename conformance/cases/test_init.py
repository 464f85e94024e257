"""``POST /init_weight_transfer_engine``: its body, its fields, and the meeting with the trainer."""

from conformance.case import Case
from conformance.cases.common import (
    DIGESTS,
    ENGINE_BASE,
    FINISH,
    FIRST_RELEASE,
    INIT,
    INIT_PATH,
    NCCL_ENGINE,
    ON_PLANE,
    PLANE,
    ROUTER,
    START,
    bare_post,
    ignored,
    post,
    post_raw,
)
from conformance.check import check_case as test_case
from conformance.steps import Call, Holds, Init, Placeholder, ReceivedEqualsSent, Update

__all__ = ["CASES", "test_case"]

SOURCE = f"{ROUTER}.init_weight_transfer_engine"
PARSE = f"{ENGINE_BASE}.parse_init_info"
JOIN = f"{NCCL_ENGINE}.init_transfer_engine"


def info(**fields: object) -> Call:
    """An init that never reaches a trainer, with just these fields."""
    return post(INIT_PATH, {"init_info": fields})


FULL = {"master_address": "127.0.0.1", "master_port": 9, "rank_offset": 1, "world_size": 2}
FIRST = ignored("init.first", "float32", 3)
SECOND = ignored("init.second", "float32", 5)


def without(field: str) -> Call:
    """An init that lacks one required field."""
    return info(**{key: value for key, value in FULL.items() if key != field})


CASES = [
    Case("INIT-001", "a trainer and the server meet", (INIT,), "rendezvous", JOIN, needs=PLANE),
    Case("INIT-002", "no body is refused", (bare_post(INIT_PATH),), "invalid-json", SOURCE),
    Case("INIT-003", "malformed JSON is refused", (post_raw(INIT_PATH, b"{bad"),), "invalid-json", SOURCE),
    Case("INIT-004", "a list as the body", (post(INIT_PATH, [1]),), "body-not-an-object", SOURCE),
    Case("INIT-005", "a string as the body", (post(INIT_PATH, "text"),), "body-not-an-object", SOURCE),
    Case("INIT-006", "null as the body", (post(INIT_PATH, None),), "body-not-an-object", SOURCE),
    Case("INIT-007", "a number as the body", (post(INIT_PATH, 7),), "body-not-an-object", SOURCE),
    Case("INIT-008", "an object without init_info is refused", (post(INIT_PATH, {}),), "missing-info", SOURCE),
    Case("INIT-009", "init_info null is refused", (post(INIT_PATH, {"init_info": None}),), "missing-info", SOURCE),
    Case("INIT-010", "init_info a string", (post(INIT_PATH, {"init_info": "str"}),), "init-fields", PARSE),
    Case("INIT-011", "init_info a number", (post(INIT_PATH, {"init_info": 1}),), "init-fields", PARSE),
    Case("INIT-012", "init_info a list", (post(INIT_PATH, {"init_info": [1]}),), "init-fields", PARSE),
    Case("INIT-013", "invalid UTF-8 is refused", (post_raw(INIT_PATH, b'{"init_info": "\xff"}'),), "encoding", SOURCE),
    Case("INIT-014", "init_info empty: all four fields are missing", (info(),), "init-fields", PARSE),
    Case("INIT-015", "an init without master_address", (without("master_address"),), "init-fields", PARSE),
    Case("INIT-016", "an init without master_port", (without("master_port"),), "init-fields", PARSE),
    Case("INIT-017", "rank_offset is required", (without("rank_offset"),), "init-fields", PARSE),
    Case("INIT-018", "world_size is required", (without("world_size"),), "init-fields", PARSE),
    Case("INIT-019", "two missing fields are both named", (info(rank_offset=1, world_size=2),), "init-fields", PARSE),
    Case(
        "INIT-020",
        "packed belongs to the update",
        (info(**FULL, packed=False),),
        "unknown-info-key",
        PARSE,
        applies_to=FIRST_RELEASE,
    ),
    Case(
        "INIT-021",
        "an unknown key is refused",
        (info(**FULL, nccl_unique_id_b64="AA=="),),
        "unknown-info-key",
        PARSE,
        applies_to=FIRST_RELEASE,
    ),
    Case("INIT-022", "an unknown key is named before missing ones", (info(bogus=1),), "unknown-info-key", PARSE),
    Case(
        "INIT-023",
        "unknown keys beside init_info are ignored",
        (Init(beside={"update_info": {}, "x": [1]}),),
        "unknown-top-level-key",
        SOURCE,
        needs=PLANE,
    ),
    Case(
        "INIT-024",
        "an init sent as text/plain",
        (Init(content_type="text/plain"),),
        "content-type",
        SOURCE,
        needs=PLANE,
    ),
    Case("INIT-025", "an init without a content type", (Init(content_type=None),), "content-type", SOURCE, needs=PLANE),
    Case(
        "INIT-026",
        "a second init replaces the group, and buckets travel on the new one",
        (INIT, Init(), START, Update((SECOND,)), FINISH, ReceivedEqualsSent()),
        "init-again",
        JOIN,
        needs=DIGESTS,
    ),
    Case(
        "INIT-027",
        "an init inside a session keeps the session",
        (INIT, START, Update((FIRST,)), INIT, Update((SECOND,)), FINISH, Holds((FIRST, SECOND))),
        "init-again",
        JOIN,
        needs=DIGESTS,
    ),
    Case(
        "INIT-028",
        "a refused init keeps the group",
        (INIT, info(**FULL, packed=True), START, Update((FIRST, SECOND)), FINISH, ReceivedEqualsSent()),
        "init-again",
        PARSE,
        needs=DIGESTS,
        applies_to=FIRST_RELEASE,
    ),
    Case(
        "INIT-029",
        "a world size that is not the trainer's fails, and the next init works",
        (Init(info={"world_size": Placeholder.WORLD_SIZE_PLUS_ONE}, wording=False), INIT),
        "rendezvous",
        JOIN,
        needs=PLANE,
        tags=ON_PLANE,
    ),
    Case(
        "INIT-030",
        "a rank offset of 0 collides with the trainer's rank and fails",
        (Init(info={"rank_offset": 0}, wording=False), INIT),
        "rendezvous",
        JOIN,
        needs=PLANE,
        tags=ON_PLANE,
    ),
    Case(
        "INIT-031",
        "a rank offset that leads beyond the world size fails",
        (Init(info={"rank_offset": Placeholder.WORLD_SIZE}, wording=False), INIT),
        "rendezvous",
        JOIN,
        needs=PLANE,
        tags=ON_PLANE,
    ),
    Case(
        "INIT-032",
        "field types are not checked: a rank offset as text fails where it is added",
        (Init(info={"rank_offset": "1"}), INIT),
        "init-fields",
        JOIN,
        needs=PLANE,
    ),
    Case(
        "INIT-036",
        "field types are not checked: a port as text reaches the rendezvous",
        (Init(info={"master_port": Placeholder.PORT_AS_TEXT}, wording=False), INIT),
        "init-fields",
        JOIN,
        needs=PLANE,
        tags=ON_PLANE,
    ),
    Case(
        "INIT-033",
        "of two equal keys the last one counts",
        (post_raw(INIT_PATH, b'{"init_info": {"bogus": 1}, "init_info": null}'),),
        "encoding",
        SOURCE,
    ),
    Case(
        "INIT-034",
        "a byte order mark before the JSON is accepted",
        (post_raw(INIT_PATH, b'\xef\xbb\xbf{"init_info": null}'),),
        "encoding",
        SOURCE,
    ),
    Case("INIT-035", "NaN as init_info", (post_raw(INIT_PATH, b'{"init_info": NaN}'),), "encoding", SOURCE),
]
