"""vLLM 0.32.0: what differs from 0.21.0, read from its sources and checked against recordings of the real server."""

from __future__ import annotations

from dataclasses import replace

from mock_vllm.profiles.profile import Bodies, Field, InfoClass, TorchTexts, Validation
from mock_vllm.profiles.v0_21_0 import PROFILE as V0_21_0

_GIB = 1024**3

PROFILE = replace(
    V0_21_0,
    version="0.32.0",
    init_info=InfoClass(
        module="vllm.distributed.weight_transfer.nccl_common",
        name="NCCLWeightTransferInitInfo",
        fields=(
            Field("master_address", default=None),
            Field("master_port", default=None),
            Field("rank_offset"),
            Field("world_size"),
            Field("nccl_unique_id_b64", default=None),
            Field("packed", default=False),
            Field("packed_buffer_size_bytes", default=_GIB),
            Field("packed_num_buffers", default=2),
        ),
        keyword_only=True,
    ),
    update_info=replace(V0_21_0.update_info, fields=(Field("names"), Field("dtype_names"), Field("shapes"))),
    session=replace(
        V0_21_0.session,
        finish_without_start="finish_weight_update called without a matching start_weight_update.",
    ),
    failed_update_closes_session=True,
    unknown_inside_is_error=True,
    endpoints={},
    bodies=Bodies.TYPED,
    validation=Validation.SUMMARISED,
    torch_texts=TorchTexts.TORCH_2_13,
    packed_in_init=True,
    update_per_worker=True,
    unique_id=True,
    unpacks_scalars=True,
    value_errors_close=False,
    hides_paths=True,
    flush_answers_json=True,
    sleep_answers_json=True,
    later_routes=frozenset(
        {
            "/abort_requests",
            "/release_kv_cache_memory",
            "/shutdown_weight_transfer_engine",
            "/start_draft_weight_update",
            "/update_weight_version",
            "/weight_checker",
            "/weight_info",
        }
    ),
    waits_by_parameter=False,
    full_fused_layer="'Parameter' object has no attribute 'weight_loader'",
    fingerprint="vllm-0.32.0-e51396b5",
    completion_fields=("ec_transfer_params", "metrics"),
    usage_fields=("prompt_tokens_details", "completion_tokens_details"),
    no_buffers="tuple index out of range",
)
