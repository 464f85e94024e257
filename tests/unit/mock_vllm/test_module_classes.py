"""A parameter path that leads nowhere names the class of the module where it ends."""

from __future__ import annotations

import pytest

from mock_vllm.model.module_classes import missing_parameter

pytestmark = pytest.mark.unit

NAMES = ["lm_head.weight", "model.norm.weight", "model.layers.0.self_attn.qkv_proj.weight"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("nope", "Qwen3ForCausalLM has no attribute `nope`"),
        ("model.nope.x", "Qwen3Model has no attribute `nope`"),
        ("model.layers.7.x", "ModuleList has no attribute `7`"),
        ("model.layers.0.nope", "Qwen3DecoderLayer has no attribute `nope`"),
        ("model.layers.0.self_attn.q_proj.weight", "Qwen3Attention has no attribute `q_proj`"),
        ("model.layers.0.self_attn.qkv_proj.bias", "QKVParallelLinear has no attribute `bias`"),
        ("model.norm", "`norm` is not an nn.Parameter"),
    ],
)
def test_the_path_is_followed_as_far_as_it_goes(name: str, text: str) -> None:
    assert missing_parameter(name, "Qwen3ForCausalLM", NAMES) == text
