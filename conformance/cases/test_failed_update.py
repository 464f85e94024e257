"""What an update that fails in the engine leaves behind, and which tensors the loader refuses."""

from conformance.case import Case
from conformance.cases.common import (
    CHECKED,
    FINISH,
    FIRST_RELEASE,
    INIT,
    MODEL,
    PLANE,
    START,
    UPDATE_PATH,
    WORKER,
    filled,
    ignored,
    parameter,
    plain_and_packed,
    post,
    session,
    sync,
)
from conformance.check import check_case as test_case
from conformance.steps import ReceivedEqualsSent, Update

__all__ = ["CASES", "test_case"]

UPDATE_RULE = f"{WORKER}.update_weights"
RELOAD = "vllm.model_executor.model_loader.reload"
LOADER = "vllm.model_executor.models.qwen3.Qwen3ForCausalLM.load_weights"
LAYER = "model.layers.0."
BAD = post(UPDATE_PATH, {"update_info": {"bogus": 1}})


def wrong(number: int, name: str, *shape: int, dtype: str = "float32") -> Case:
    """A tensor of the model in a shape that its parameter does not have."""
    what = f"{name} as {list(shape)}"
    steps = session(Update((filled(name, dtype, *shape),)))
    return Case(f"FAILED-{number:03}", f"{what} is refused", steps, "wrong-shape", LOADER, needs=CHECKED)


def named(number: int, sentence: str, name: str, requirement: str) -> Case:
    """A tensor under a name that the model does not have."""
    steps = session(Update((filled(name, "float32", 4),)))
    return Case(f"FAILED-{number:03}", sentence, steps, requirement, LOADER, needs=CHECKED)


def cast(number: int, dtype: str) -> Case:
    """The head in another dtype, of the right shape."""
    steps = (*session(Update((filled("lm_head.weight", dtype, 320, 64),))), ReceivedEqualsSent())
    sentence = f"lm_head.weight as {dtype} is converted on loading"
    return Case(f"FAILED-{number:03}", sentence, steps, "loader", LOADER, needs=MODEL | CHECKED)


CASES = [
    Case("FAILED-001", "a start after a failed update", (START, BAD, START), "failed-update-start", UPDATE_RULE),
    Case(
        "FAILED-002",
        "a finish after a failed update",
        (START, BAD, FINISH),
        "failed-update-finish",
        UPDATE_RULE,
    ),
    Case(
        "FAILED-003",
        "a failed update, a finish, then a session",
        (START, BAD, FINISH, START, FINISH),
        "recovery",
        UPDATE_RULE,
    ),
    Case(
        "FAILED-004",
        "two failed updates in a row, then finish",
        (START, BAD, BAD, FINISH, FINISH),
        "failed-update-finish",
        UPDATE_RULE,
    ),
    Case(
        "FAILED-005",
        "a good update after a failed one, with no start between",
        (INIT, START, BAD, Update((ignored("failed.next", "float32", 4),)), FINISH, ReceivedEqualsSent()),
        "recovery",
        UPDATE_RULE,
        needs=MODEL,
    ),
    Case(
        "FAILED-006",
        "a full sync in the session of a failed update arrives whole",
        (INIT, START, BAD, *sync("B")[1:]),
        "recovery",
        RELOAD,
        needs=MODEL,
        applies_to=FIRST_RELEASE,
    ),
    Case(
        "FAILED-007",
        "after a failed update a finish, then a full sync",
        (INIT, START, BAD, FINISH, *sync("B")),
        "recovery",
        RELOAD,
        needs=MODEL,
    ),
    Case(
        "FAILED-008",
        "half a layer, a refused tensor, finish, then a full sync on a new group",
        (
            INIT,
            START,
            Update((parameter(LAYER + "self_attn.q_proj.weight"), parameter(LAYER + "mlp.gate_proj.weight"))),
            Update((filled("no.such", "float32", 4),)),
            FINISH,
            INIT,
            *sync("A", bucket=10),
        ),
        "recovery",
        RELOAD,
        applies_to=FIRST_RELEASE,
        needs=MODEL | CHECKED,
    ),
    *plain_and_packed(
        Case(
            "FAILED-009",
            "a start and a finish after an update that failed while loading",
            (INIT, START, Update((filled("no.such", "float32", 4),)), START, FINISH),
            "failed-update-start",
            LOADER,
            needs=CHECKED,
        ),
        "FAILED-010",
    ),
    wrong(11, "model.norm.weight", 32),
    wrong(12, "lm_head.weight", 300, 64),
    wrong(13, "lm_head.weight", 320, 32),
    wrong(14, "model.embed_tokens.weight", 321, 64),
    wrong(15, LAYER + "self_attn.q_proj.weight", 64, 64),
    wrong(16, LAYER + "self_attn.k_proj.weight", 64, 32),
    wrong(17, LAYER + "self_attn.o_proj.weight", 64, 64),
    wrong(18, LAYER + "mlp.gate_proj.weight", 64, 64),
    wrong(19, LAYER + "mlp.down_proj.weight", 32, 128),
    wrong(20, LAYER + "self_attn.q_norm.weight", 16),
    wrong(21, "lm_head.weight", 320 * 64),
    wrong(22, LAYER + "input_layernorm.weight"),
    named(23, "a name outside the model is refused", "no.such", "unknown-name-outside"),
    named(24, "an unknown name inside the model", "model.nope", "unknown-name-inside"),
    named(25, "an unknown name inside a layer", LAYER + "self_attn.q_proj.nope", "loader"),
    named(26, "a layer that the model does not have", "model.layers.7.mlp.gate_proj.weight", "loader"),
    named(27, "an unknown name below a module without parts", "lm_head.nope", "loader"),
    named(28, "the name of a module", "model", "loader"),
    named(29, "an empty name", "", "loader"),
    named(30, "a rotary buffer of older checkpoints", LAYER + "self_attn.rotary_emb.inv_freq", "loader"),
    cast(31, "bfloat16"),
    cast(32, "float64"),
    cast(33, "int8"),
    Case(
        "FAILED-036",
        "a wrong shape in a packed bucket, then a start and a finish",
        (
            INIT,
            START,
            Update((ignored("failed.first", "float32", 4), filled("model.norm.weight", "float32", 60)), packed=True),
            START,
            FINISH,
        ),
        "wrong-shape",
        LOADER,
        needs=CHECKED,
    ),
    Case(
        "FAILED-034",
        "a refused tensor in a packed bucket stops the ones after it in the bucket",
        session(
            Update(
                (ignored("failed.a", "float32", 4), filled("no.such", "float32", 4), ignored("failed.b", "float32", 4)),
                packed=True,
            )
        ),
        "unknown-name-outside",
        LOADER,
        needs=CHECKED,
    ),
    Case(
        "FAILED-035",
        "a bucket after one whose tensor was refused and consumed",
        session(
            Update((filled("no.such", "float32", 4),)),
            Update((ignored("failed.own", "float32", 8),)),
        ),
        "unknown-name-outside",
        LOADER,
        needs=PLANE | CHECKED,
    ),
]
