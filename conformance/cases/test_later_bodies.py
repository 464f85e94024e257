"""What 0.32.0 asks of the bodies of init and update, where it differs from 0.21.0."""

from conformance.case import Case
from conformance.cases.common import (
    DIGESTS,
    ENGINE_BASE,
    FINISH,
    INIT,
    INIT_PATH,
    LATER_ROUTER,
    MODEL,
    NCCL_ENGINE,
    ONLY_0_32,
    PACKED,
    PLANE,
    START,
    UPDATE_PATH,
    dropped,
    in_packed_group,
    packed_init,
    post,
    sync,
)
from conformance.check import check_case as test_case
from conformance.steps import Call, Init, ReceivedEqualsSent, Step, Update

__all__ = ["CASES", "test_case"]

COMMON = "vllm.distributed.weight_transfer.nccl_common.NCCLWeightTransferInitInfo"
PARSE = f"{ENGINE_BASE}.parse_update_info"
FIRST = dropped("bodies.first", "float32", 3)
SECOND = dropped("bodies.second", "float32", 5)
JOINT = {"rank_offset": 1, "world_size": 2}
ADDRESS = {"master_address": "127.0.0.1", "master_port": 9}
UID = "A" * 172 + "=="


def info(**fields: object) -> Call:
    """An init that never reaches a trainer."""
    return post(INIT_PATH, {"init_info": fields})


def init_case(number: int, sentence: str, *steps: Step, requirement: str = "init-fields", source: str = COMMON) -> Case:
    """An init that is judged before any meeting."""
    return Case(f"INIT-{number:03}", sentence, steps, requirement, source, applies_to=ONLY_0_32)


def met(number: int, sentence: str, *steps: Step, requirement: str = "init-fields") -> Case:
    """An init that meets the trainer, and what arrives then."""
    source = f"{NCCL_ENGINE}.init_transfer_engine"
    return Case(f"INIT-{number:03}", sentence, steps, requirement, source, applies_to=ONLY_0_32, needs=DIGESTS)


def refused(number: int, sentence: str, requirement: str, update_info: object) -> Case:
    """An update_info that is refused inside a session, and what it does to the session."""
    steps = (START, post(UPDATE_PATH, {"update_info": update_info}), FINISH)
    return Case(f"UPDATE-{number:03}", sentence, steps, requirement, PARSE, applies_to=ONLY_0_32)


NAMED = {"names": ["a"], "dtype_names": ["float32"], "shapes": [[2]]}

CASES = [
    met(
        37,
        "packed in the init, buckets that do not say it",
        packed_init(),
        START,
        in_packed_group(FIRST, SECOND),
        FINISH,
        ReceivedEqualsSent(),
    ),
    met(
        38,
        "the buffer's size in the init cuts the buckets",
        packed_init(packed_buffer_size_bytes=8),
        START,
        in_packed_group(FIRST, SECOND, buffer_bytes=8),
        FINISH,
        ReceivedEqualsSent(),
    ),
    met(
        39,
        "a new group forgets the packing of the old one",
        packed_init(packed_num_buffers=3),
        INIT,
        START,
        Update((SECOND, FIRST)),
        FINISH,
        ReceivedEqualsSent(),
        requirement="init-again",
    ),
    met(
        40,
        "a refused init keeps the group",
        INIT,
        info(**ADDRESS, **JOINT, bogus=2),
        START,
        Update((FIRST, SECOND)),
        FINISH,
        ReceivedEqualsSent(),
        requirement="init-again",
    ),
    init_case(41, "a unique id beside an address is refused", info(**ADDRESS, **JOINT, nccl_unique_id_b64=UID)),
    init_case(42, "an address and a port of null count as none", info(**JOINT, master_address=None, master_port=None)),
    init_case(43, "an empty unique id counts as none", info(**JOINT, nccl_unique_id_b64="")),
    init_case(44, "a unique id must be base64", info(**JOINT, nccl_unique_id_b64="not base64")),
    init_case(45, "a unique id must be standard base64", info(**JOINT, nccl_unique_id_b64="_-" * 86)),
    init_case(46, "a unique id has 128 bytes", info(**JOINT, nccl_unique_id_b64="AAAA")),
    init_case(47, "a unique id is a text", info(**JOINT, nccl_unique_id_b64=7)),
    Case(
        "INIT-048",
        "a JSON content type with a character set is JSON",
        (Init(content_type="application/json; charset=utf-8"),),
        "content-type",
        f"{LATER_ROUTER}.init_weight_transfer_engine",
        applies_to=ONLY_0_32,
        needs=PLANE,
    ),
    Case(
        "INIT-049",
        "a content type that is built on JSON is JSON",
        (Init(content_type="application/vnd.api+json"),),
        "content-type",
        f"{LATER_ROUTER}.init_weight_transfer_engine",
        applies_to=ONLY_0_32,
        needs=PLANE,
    ),
    refused(53, "packed belongs to the init", "unknown-info-key", {**NAMED, "packed": True}),
    refused(54, "packed false belongs to the init as well", "unknown-info-key", {**NAMED, "packed": False}),
    refused(55, "the buffer's size belongs to the init", "unknown-info-key", {**NAMED, "packed_buffer_size_bytes": 64}),
    refused(56, "the number of buffers belongs to the init", "unknown-info-key", {**NAMED, "packed_num_buffers": 2}),
    refused(57, "an array without an entry for the worker", "update-array", []),
    refused(58, "an array of something else than objects", "update-array", ["a"]),
    refused(59, "an array whose entry has an unknown key", "update-array", [{"bogus": 3}]),
    Case(
        "UPDATE-060",
        "an array with one entry for the one worker",
        (INIT, START, Update((FIRST, SECOND), as_array=True), FINISH, ReceivedEqualsSent()),
        "update-array",
        f"{NCCL_ENGINE}.receive_weights",
        applies_to=ONLY_0_32,
        needs=DIGESTS,
    ),
    Case(
        "UPDATE-061",
        "several packed updates in one session, an empty one among them",
        (
            packed_init(),
            START,
            in_packed_group(SECOND),
            in_packed_group(),
            in_packed_group(FIRST),
            FINISH,
            ReceivedEqualsSent(),
        ),
        "session-order",
        PACKED,
        applies_to=ONLY_0_32,
        needs=DIGESTS,
    ),
    Case(
        "UPDATE-062",
        "a JSON content type with a character set is JSON",
        (INIT, START, Update((FIRST,), content_type="application/json; charset=utf-8"), FINISH, ReceivedEqualsSent()),
        "content-type",
        f"{LATER_ROUTER}.update_weights",
        applies_to=ONLY_0_32,
        needs=DIGESTS,
    ),
    Case(
        "SYNC-016",
        "a plain group, then a packed one",
        (
            INIT,
            *sync("B", bucket=8),
            packed_init(packed_buffer_size_bytes=30_000),
            *sync("A", bucket=8, packed=True, buffer_bytes=30_000, at_init=True),
        ),
        "sync",
        f"{NCCL_ENGINE}.receive_weights",
        applies_to=ONLY_0_32,
        needs=MODEL,
    ),
]
