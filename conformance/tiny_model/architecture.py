"""The sizes of the tiny model and its configuration files.

``head_dim`` is 32 because vLLM's CPU attention knows no smaller one; the vocabulary is a multiple of 64, to which
vLLM pads it, so that no received tensor differs from the served one by padding.
"""

from __future__ import annotations

VOCABULARY = 320
HIDDEN = 64
INTERMEDIATE = 128
LAYERS = 2
HEADS = 4
KV_HEADS = 2
HEAD_DIM = 32
END_OF_TEXT = 256
"""Token id after the 256 byte tokens; the rest up to VOCABULARY is unused."""


def config() -> dict[str, object]:
    """``config.json`` as transformers writes it for ``Qwen3ForCausalLM``."""
    return {
        "architectures": ["Qwen3ForCausalLM"],
        "model_type": "qwen3",
        "attention_bias": False,
        "attention_dropout": 0.0,
        "bos_token_id": END_OF_TEXT,
        "eos_token_id": END_OF_TEXT,
        "head_dim": HEAD_DIM,
        "hidden_act": "silu",
        "hidden_size": HIDDEN,
        "initializer_range": 0.02,
        "intermediate_size": INTERMEDIATE,
        "max_position_embeddings": 512,
        "max_window_layers": LAYERS,
        "num_attention_heads": HEADS,
        "num_hidden_layers": LAYERS,
        "num_key_value_heads": KV_HEADS,
        "rms_norm_eps": 1e-6,
        "rope_scaling": None,
        "rope_theta": 10000.0,
        "sliding_window": None,
        "tie_word_embeddings": False,
        "torch_dtype": "float32",
        "use_cache": True,
        "use_sliding_window": False,
        "vocab_size": VOCABULARY,
    }


def generation_config() -> dict[str, object]:
    """``generation_config.json``."""
    return {"bos_token_id": END_OF_TEXT, "eos_token_id": END_OF_TEXT, "do_sample": False}


def parameter_shapes() -> dict[str, tuple[int, ...]]:
    """Checkpoint names and shapes of all 25 tensors, in the order of a Hugging Face checkpoint of Qwen3."""
    shapes: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (VOCABULARY, HIDDEN)}
    for layer in range(LAYERS):
        prefix = f"model.layers.{layer}."
        shapes[prefix + "self_attn.q_proj.weight"] = (HEADS * HEAD_DIM, HIDDEN)
        shapes[prefix + "self_attn.k_proj.weight"] = (KV_HEADS * HEAD_DIM, HIDDEN)
        shapes[prefix + "self_attn.v_proj.weight"] = (KV_HEADS * HEAD_DIM, HIDDEN)
        shapes[prefix + "self_attn.o_proj.weight"] = (HIDDEN, HEADS * HEAD_DIM)
        shapes[prefix + "self_attn.q_norm.weight"] = (HEAD_DIM,)
        shapes[prefix + "self_attn.k_norm.weight"] = (HEAD_DIM,)
        shapes[prefix + "mlp.gate_proj.weight"] = (INTERMEDIATE, HIDDEN)
        shapes[prefix + "mlp.up_proj.weight"] = (INTERMEDIATE, HIDDEN)
        shapes[prefix + "mlp.down_proj.weight"] = (HIDDEN, INTERMEDIATE)
        shapes[prefix + "input_layernorm.weight"] = (HIDDEN,)
        shapes[prefix + "post_attention_layernorm.weight"] = (HIDDEN,)
    shapes["model.norm.weight"] = (HIDDEN,)
    shapes["lm_head.weight"] = (VOCABULARY, HIDDEN)
    return shapes
