"""Wrong shapes by kind of parameter, in the words recorded from vLLM 0.21.0."""

from __future__ import annotations

import pytest

from mock_vllm.errors import WorkerError
from mock_vllm.model.shape_checks import check_shape

pytestmark = pytest.mark.unit

SHAPES = {
    "model.norm.weight": (64,),
    "lm_head.weight": (320, 64),
    "model.embed_tokens.weight": (320, 64),
    "model.layers.0.self_attn.q_proj.weight": (128, 64),
    "model.layers.0.self_attn.o_proj.weight": (64, 128),
    "model.layers.0.mlp.gate_proj.weight": (128, 64),
    "model.layers.0.mlp.down_proj.weight": (64, 128),
    "model.layers.0.self_attn.q_norm.weight": (32,),
}
OUT_OF_RANGE = "Dimension out of range (expected to be in range of [-1, 0], but got 1)"


@pytest.mark.parametrize(
    ("name", "given", "text"),
    [
        ("norm", (32,), "Attempted to load weight (torch.Size([32])) into parameter (torch.Size([64]))"),
        ("norm", (), "Attempted to load weight (torch.Size([])) into parameter (torch.Size([64]))"),
        ("norm", (64, 1), "Attempted to load weight (torch.Size([64, 1])) into parameter (torch.Size([64]))"),
        (
            "layers.0.self_attn.q_norm",
            (31,),
            "Attempted to load weight (torch.Size([31])) into parameter (torch.Size([32]))",
        ),
        ("lm_head", (319, 64), ""),
        ("lm_head", (320, 63), ""),
        ("lm_head", (320,), ""),
        ("lm_head", (), "tuple index out of range"),
        ("embed_tokens", (321, 64), ""),
        ("layers.0.self_attn.q_proj", (127, 64), "start (0) + length (128) exceeds dimension size (127)."),
        ("layers.0.self_attn.q_proj", (1, 128, 64), "start (0) + length (128) exceeds dimension size (1)."),
        ("layers.0.self_attn.q_proj", (128, 63), ""),
        ("layers.0.self_attn.q_proj", (8192,), ""),
        ("layers.0.self_attn.q_proj", (), "narrow() cannot be applied to a 0-dim tensor."),
        ("layers.0.self_attn.o_proj", (63, 128), ""),
        ("layers.0.self_attn.o_proj", (64, 127), "start (0) + length (128) exceeds dimension size (127)."),
        ("layers.0.self_attn.o_proj", (8192,), OUT_OF_RANGE),
        ("layers.0.mlp.down_proj", (), OUT_OF_RANGE),
        ("layers.0.mlp.gate_proj", (128, 63), ""),
    ],
)
def test_a_tensor_that_is_not_taken(name: str, given: tuple[int, ...], text: str) -> None:
    full = f"{name}.weight" if name == "lm_head" else f"model.{name}.weight"
    with pytest.raises(WorkerError) as caught:
        check_shape(full, given, SHAPES[full])
    assert str(caught.value) == text


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("layers.0.self_attn.q_proj", (129, 64)),
        ("layers.0.mlp.gate_proj", (256, 64)),
        ("layers.0.self_attn.o_proj", (64, 256)),
        ("layers.0.mlp.down_proj", (64, 129)),
        ("norm", (64,)),
    ],
)
def test_a_linear_layer_cuts_what_is_too_long(name: str, given: tuple[int, ...]) -> None:
    check_shape(f"model.{name}.weight", given, SHAPES[f"model.{name}.weight"])
