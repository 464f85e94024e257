"""``POST /update_weights``: its body and its fields. What travels beside it is in ``test_buckets``."""

from conformance.case import Case
from conformance.cases.common import (
    CHECKED,
    DIGESTS,
    EMPTY_UPDATE,
    ENGINE_BASE,
    FINISH,
    FIRST_RELEASE,
    INIT,
    NCCL_ENGINE,
    PACKED,
    PLANE,
    ROUTER,
    START,
    UPDATE_PATH,
    bare_post,
    ignored,
    post,
    post_raw,
    session,
)
from conformance.check import check_case as test_case
from conformance.steps import ReceivedEqualsSent, Step, Update

__all__ = ["CASES", "test_case"]

SOURCE = f"{ROUTER}.update_weights"
PARSE = f"{ENGINE_BASE}.parse_update_info"
FIELDS = f"{NCCL_ENGINE}.update_info_cls"
RECEIVE = f"{NCCL_ENGINE}.receive_weights"
SMALL = ignored("update.small", "float32", 2)
OTHER = ignored("update.other", "float32", 3)


def refused(number: int, sentence: str, step: Step, requirement: str, source: str = SOURCE) -> Case:
    """A body that is refused inside a session, which stays open."""
    return Case(f"UPDATE-{number:03}", sentence, (START, step, FINISH), requirement, source)


def told(number: int, sentence: str, update: Update, requirement: str = "update-fields", source: str = PARSE) -> Case:
    """An update that the engine judges by its metadata, over a group that exists."""
    return Case(f"UPDATE-{number:03}", sentence, (INIT, START, update, FINISH), requirement, source, needs=PLANE)


def says(**announce: object) -> Update:
    """An update of one small tensor that announces something else, and broadcasts nothing."""
    return Update((SMALL,), announce=announce, broadcasts=())


CASES = [
    refused(1, "no body is refused", bare_post(UPDATE_PATH), "invalid-json"),
    refused(2, "malformed JSON is refused", post_raw(UPDATE_PATH, b"{bad"), "invalid-json"),
    refused(3, "a list as the body of an update", post(UPDATE_PATH, [1]), "body-not-an-object"),
    refused(4, "a string as the body of an update", post(UPDATE_PATH, "text"), "body-not-an-object"),
    refused(5, "null as the body of an update", post(UPDATE_PATH, None), "body-not-an-object"),
    refused(6, "an object without update_info is refused", post(UPDATE_PATH, {}), "missing-info"),
    refused(7, "update_info null is refused", post(UPDATE_PATH, {"update_info": None}), "missing-info"),
    refused(8, "update_info a string", post(UPDATE_PATH, {"update_info": "str"}), "update-fields", PARSE),
    refused(9, "update_info a number", post(UPDATE_PATH, {"update_info": 5}), "update-fields", PARSE),
    refused(10, "update_info a list", post(UPDATE_PATH, {"update_info": [{}]}), "update-fields", PARSE),
    refused(11, "invalid UTF-8 is refused", post_raw(UPDATE_PATH, b'{"update_info": "\xff"}'), "encoding"),
    refused(
        12,
        "update_info empty: three fields are missing",
        post(UPDATE_PATH, {"update_info": {}}),
        "update-fields",
        PARSE,
    ),
    refused(13, "names is required", Update((SMALL,), drop=("names",), broadcasts=()), "update-fields", PARSE),
    refused(
        14, "dtype_names is required", Update((SMALL,), drop=("dtype_names",), broadcasts=()), "update-fields", PARSE
    ),
    refused(15, "shapes is required", Update((SMALL,), drop=("shapes",), broadcasts=()), "update-fields", PARSE),
    refused(16, "an unknown key is refused", says(bogus=1), "unknown-info-key", PARSE),
    refused(
        17, "is_checkpoint_format belongs to the start", says(is_checkpoint_format=True), "unknown-info-key", PARSE
    ),
    refused(18, "update_kind is another release's", says(update_kind="dense"), "unknown-info-key", PARSE),
    refused(19, "fewer shapes than names", says(shapes=[]), "list-lengths", FIELDS),
    refused(20, "more shapes than names", says(shapes=[[2], [2]]), "list-lengths", FIELDS),
    refused(21, "fewer dtypes than names", says(dtype_names=[]), "list-lengths", FIELDS),
    refused(
        22, "fewer names than dtypes and shapes: the dtypes are named first", says(names=[]), "list-lengths", FIELDS
    ),
    refused(23, "names null", says(names=None), "update-fields", FIELDS),
    Case(
        "UPDATE-024",
        "an update before any init is refused, with tensors or without",
        (START, Update((SMALL,), broadcasts=()), Update(beside={"again": 1}), FINISH),
        "not-initialised",
        RECEIVE,
        needs=frozenset({"no group"}),
    ),
    told(25, "a dtype that torch lacks", says(dtype_names=["float33"]), "unknown-dtype", RECEIVE),
    told(26, "a dtype with its module's name", says(dtype_names=["torch.bfloat16"]), "unknown-dtype", RECEIVE),
    told(27, "a name of torch that is no dtype", says(dtype_names=["nn"]), "unknown-dtype", RECEIVE),
    told(28, "a dtype that torch lacks, packed", says(dtype_names=["float33"], packed=True), "unknown-dtype", RECEIVE),
    told(29, "a dtype that is a number", says(dtype_names=[32]), "unknown-dtype", RECEIVE),
    told(
        30,
        "an unknown dtype in the second place: the first tensor is taken before",
        Update((SMALL, OTHER), announce={"dtype_names": ["float32", "float33"]}, broadcasts=(SMALL.data,)),
        "unknown-dtype",
        RECEIVE,
    ),
    told(
        31,
        "an unknown dtype in the second place, packed: nothing is taken",
        Update((OTHER, SMALL), packed=True, announce={"dtype_names": ["float32", "float33"]}, broadcasts=()),
        "unknown-dtype",
        PACKED,
    ),
    told(32, "a negative dimension", says(shapes=[[-2]]), source=RECEIVE),
    told(33, "a dimension that is a fraction", says(shapes=[[2.5]]), source=RECEIVE),
    told(34, "a dimension that is text", says(shapes=[["2"]]), source=RECEIVE),
    told(35, "a shape that is text", says(shapes=["2"]), source=RECEIVE),
    told(36, "a shape that is a number", Update((SMALL,), announce={"shapes": [2]}), source=RECEIVE),
    told(37, "a fraction as a dimension, packed", says(shapes=[[2.5]], packed=True), source=PACKED),
    Case(
        "UPDATE-038",
        "names as one text are taken letter by letter",
        session(Update((SMALL,), announce={"names": "a"})),
        "update-fields",
        RECEIVE,
        needs=CHECKED,
    ),
    told(39, "packed as a text counts as true", Update((SMALL, OTHER), announce={"packed": "false"}, packed=True)),
    told(40, "packed 0 counts as false", Update((OTHER,), announce={"packed": 0})),
    told(
        41,
        "a buffer of 0 bytes ends after every tensor",
        Update((SMALL, OTHER), packed=True, buffer_bytes=0),
        source=PACKED,
    ),
    told(
        42,
        "a negative buffer ends after every tensor",
        Update((SMALL, OTHER), packed=True, buffer_bytes=-1),
        source=PACKED,
    ),
    told(43, "no buffers at all", says(packed=True, packed_num_buffers=0), source=PACKED),
    told(44, "one buffer", Update((SMALL,), packed=True, announce={"packed_num_buffers": 1}), source=PACKED),
    told(45, "a buffer size that is text", says(packed=True, packed_buffer_size_bytes="16"), source=PACKED),
    told(
        46,
        "keys beside update_info are ignored",
        Update((SMALL,), beside={"init_info": {}}),
        "unknown-top-level-key",
        SOURCE,
    ),
    told(47, "an update sent as text/plain", Update((SMALL,), content_type="text/plain"), "content-type", SOURCE),
    told(48, "an update without a content type", Update((SMALL,), content_type=None), "content-type", SOURCE),
    told(49, "an update of nothing", EMPTY_UPDATE, "empty-lists", RECEIVE),
    told(50, "an update of nothing, packed", Update(packed=True), "empty-lists", PACKED),
    Case(
        "UPDATE-051",
        "several updates in one session, plain and packed in turn",
        (*session(Update((SMALL,)), Update((OTHER,), packed=True), Update(beside={"empty": 1})), ReceivedEqualsSent()),
        "session-order",
        RECEIVE,
        needs=DIGESTS,
        applies_to=FIRST_RELEASE,
    ),
    Case(
        "UPDATE-052",
        "an update of nothing leaves the next bucket where it is",
        (*session(EMPTY_UPDATE, Update((OTHER,))), ReceivedEqualsSent()),
        "empty-lists",
        RECEIVE,
        needs=DIGESTS,
    ),
]
