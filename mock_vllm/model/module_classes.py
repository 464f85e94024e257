"""The classes of vLLM's modules, which torch prints when a parameter's path leads nowhere (vLLM 0.21.0, Qwen3)."""

from __future__ import annotations

from collections.abc import Collection

_BY_LAST_PART = {
    "lm_head": "ParallelLMHead",
    "embed_tokens": "VocabParallelEmbedding",
    "qkv_proj": "QKVParallelLinear",
    "gate_up_proj": "MergedColumnParallelLinear",
    "o_proj": "RowParallelLinear",
    "down_proj": "RowParallelLinear",
    "layers": "ModuleList",
}


def module_class(path: str, architecture: str) -> str:
    """Return the class name of the module at a dotted path; empty for the model itself."""
    family = architecture.removesuffix("ForCausalLM")
    last = path.rpartition(".")[2]
    if not path:
        return architecture
    if last in _BY_LAST_PART:
        return _BY_LAST_PART[last]
    if last.endswith("norm"):
        return "RMSNorm"
    return {"model": f"{family}Model", "self_attn": f"{family}Attention", "mlp": "Qwen2MLP"}.get(
        last, f"{family}DecoderLayer" if last.isdigit() else last
    )


def missing_parameter(name: str, architecture: str, runtime_names: Collection[str]) -> str:
    """Return what `torch.nn.Module.get_parameter` says about a path that does not exist."""
    modules = {""} | {known[:end] for known in runtime_names for end in _dots(known)}
    path = ""
    for item in name.split("."):
        deeper = f"{path}.{item}" if path else item
        if deeper not in modules:
            return f"{module_class(path, architecture)} has no attribute `{item}`"
        path = deeper
    return f"`{name.rpartition('.')[2]}` is not an nn.Parameter"


def _dots(name: str) -> list[int]:
    return [index for index, character in enumerate(name) if character == "."]
