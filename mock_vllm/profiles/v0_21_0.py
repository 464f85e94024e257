"""vLLM 0.21.0, read from its sources and checked against recordings of the real server."""

from __future__ import annotations

from mock_vllm.profiles.profile import Endpoint, Field, InfoClass, Profile, SessionTexts

_ENGINE_MODULE = "vllm.distributed.weight_transfer.nccl_engine"
_RLHF_ROUTER = "entrypoints/serve/rlhf/api_router.py"
_CACHE_ROUTER = "entrypoints/serve/cache/api_router.py"
_GIB = 1024**3

PROFILE = Profile(
    version="0.21.0",
    engine_class="NCCLWeightTransferEngine",
    init_info=InfoClass(
        module=_ENGINE_MODULE,
        name="NCCLWeightTransferInitInfo",
        fields=(Field("master_address"), Field("master_port"), Field("rank_offset"), Field("world_size")),
    ),
    update_info=InfoClass(
        module=_ENGINE_MODULE,
        name="NCCLWeightTransferUpdateInfo",
        fields=(
            Field("names"),
            Field("dtype_names"),
            Field("shapes"),
            Field("packed", default=False),
            Field("packed_buffer_size_bytes", default=_GIB),
            Field("packed_num_buffers", default=2),
        ),
    ),
    session=SessionTexts(
        not_configured=("Weight transfer not configured. Please set weight_transfer_config to enable weight transfer."),
        already_active=(
            "start_weight_update called while a weight update is already active. Call finish_weight_update first."
        ),
        update_without_start="start_weight_update must be called before update_weights.",
        finish_without_start="start_weight_update must be called before finish_weight_update.",
        not_initialized="NCCL weight transfer not initialized. Call init_transfer_engine() first.",
    ),
    failed_update_closes_session=False,
    unknown_inside_is_error=False,
    unsupported_dtype=(
        "Unsupported dtype {dtype}: should be one of "
        "int8, uint8, int32, int64, float16, float32, float64, bfloat16, float8e4m3."
    ),
    fingerprint="vllm-0.21.0-c66295f1",
    completion_fields=("prompt_routed_experts",),
    usage_fields=("prompt_tokens_details",),
    endpoints={
        "/pause": Endpoint(_RLHF_ROUTER, 30, "pause_generation"),
        "/get_world_size": Endpoint(_RLHF_ROUTER, 168, "get_world_size"),
        "/reset_prefix_cache": Endpoint(_CACHE_ROUTER, 21, "reset_prefix_cache"),
    },
)
