"""Names inside the model that later releases refuse, in the words recorded from vLLM 0.32.0."""

from __future__ import annotations

import pytest

from mock_vllm.errors import WorkerError
from mock_vllm.model.nested_names import refuse_inside

pytestmark = pytest.mark.unit

NAMES = ["lm_head.weight", "model.layers.0.self_attn.qkv_proj.weight"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "model.nope",
            "There is no module or parameter named 'nope' in Qwen3Model. "
            "The available parameters belonging to  (Qwen3Model) are: {'layers.0.self_attn.qkv_proj.weight'}",
        ),
        (
            "model.layers.7.mlp.gate_proj.weight",
            "There is no module or parameter named 'layers.7' in Qwen3Model. "
            "The available parameters belonging to layers (ModuleList) are: {'layers.0.self_attn.qkv_proj.weight'}",
        ),
        (
            "model",
            "There is no module or parameter named '' in Qwen3Model. "
            "The available parameters belonging to  (Qwen3Model) are: {'layers.0.self_attn.qkv_proj.weight'}",
        ),
        ("model.layers.0.self_attn.q_proj.nope", "'QKVParallelLinear' object has no attribute 'data'"),
    ],
)
def test_a_name_that_leads_nowhere(name: str, text: str) -> None:
    with pytest.raises(WorkerError) as caught:
        refuse_inside(name, "Qwen3ForCausalLM", NAMES)
    assert str(caught.value) == text


def test_an_unexpected_bias_is_passed_over() -> None:
    refuse_inside("model.layers.0.self_attn.q_proj.bias", "Qwen3ForCausalLM", NAMES)
