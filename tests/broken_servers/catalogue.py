"""Every broken server, by the family of cases it is meant for."""

from __future__ import annotations

from dataclasses import replace

from mock_vllm.profiles.v0_21_0 import PROFILE
from tests.broken_servers import answers, http_patches, launch_patches, receivers, session_patches, transfer_patches
from tests.broken_servers.answers import at, json_where, with_status
from tests.broken_servers.broken_server import BrokenServer

_TEXTS = PROFILE.session
_LATER_FINISH = replace(
    _TEXTS, finish_without_start="finish_weight_update called without a matching start_weight_update."
)
_IN_THE_WAY = "a weight update is in the way"

BROKEN = [
    # HTTP: routes, envelope, connections
    BrokenServer(
        "unknown routes answer in the envelope",
        "HTTP",
        rewrite=json_where(with_status(404), answers.envelope_for_detail),
    ),
    BrokenServer("a wrong method is not found", "HTTP", rewrite=answers.status_as(with_status(405), 404)),
    BrokenServer("a trailing slash is not found", "HTTP", rewrite=answers.status_as(with_status(307), 404)),
    BrokenServer(
        "version says more",
        "HTTP",
        rewrite=json_where(at("/version"), lambda body: {**body, "commit": "abc"}),
    ),
    BrokenServer(
        "models have no permission",
        "HTTP",
        rewrite=json_where(
            at("/v1/models"),
            lambda body: {**body, "data": [{k: v for k, v in body["data"][0].items() if k != "permission"}]},
        ),
    ),
    BrokenServer(
        "health has a body",
        "HTTP",
        rewrite=lambda answer: answer.with_body(b"ok") if answer.path == "/health" else answer,
    ),
    BrokenServer(
        "world size is a text",
        "HTTP",
        rewrite=json_where(at("/get_world_size"), lambda body: {"world_size": str(body["world_size"])}),
    ),
    BrokenServer("engine errors keep the connection", "HTTP", swallow=True),
    BrokenServer("refusals close the connection", "HTTP", rewrite=answers.closing(with_status(400))),
    BrokenServer("errors are plain text", "HTTP", rewrite=answers.content_type_as(with_status(500), b"text/plain")),
    BrokenServer("errors have no code", "HTTP", rewrite=json_where(with_status(500), answers.without_code)),
    BrokenServer("messages are shouted", "HTTP", rewrite=json_where(with_status(500), answers.shout)),
    BrokenServer("refusals are 422", "HTTP", rewrite=answers.status_as(with_status(400), 422)),
    BrokenServer(
        "success is 201",
        "HTTP",
        rewrite=answers.status_as(
            lambda answer: answer.status == 200 and answer.method == "POST" and not answer.path.startswith("/mock/"),
            201,
        ),
    ),
    # INIT
    BrokenServer("unknown keys are ignored", "INIT", patch=http_patches.unknown_keys_are_ignored),
    BrokenServer("a second init is refused", "INIT", patch=transfer_patches.a_second_init_is_refused),
    # START
    BrokenServer("start reads no body", "START", patch=http_patches.start_reads_no_body),
    BrokenServer("the format is ignored", "START", patch=session_patches.the_format_is_ignored),
    BrokenServer("the format outlasts its session", "START", patch=session_patches.the_format_outlasts_its_session),
    BrokenServer("bodies need a content type", "START", patch=http_patches.bodies_need_a_content_type),
    # UPDATE
    BrokenServer("bodies that are no objects are 400", "UPDATE", patch=http_patches.bodies_are_any_json),
    BrokenServer("lengths are not compared", "UPDATE", patch=http_patches.lengths_are_not_compared),
    BrokenServer("empty updates are refused", "UPDATE", patch=http_patches.empty_updates_are_refused),
    BrokenServer("unknown dtypes are bytes", "UPDATE", patch=transfer_patches.unknown_dtypes_are_bytes),
    # FINISH, ORDER
    BrokenServer("finish is worded as in 0.23", "FINISH", profile={"session": _LATER_FINISH}),
    BrokenServer("finish needs no start", "FINISH", patch=session_patches.finish_needs_no_start),
    BrokenServer("finish forgets to close", "FINISH", patch=session_patches.finish_forgets_to_close),
    BrokenServer("a second start is fine", "ORDER", patch=session_patches.a_second_start_is_fine),
    BrokenServer("updates need no start", "ORDER", patch=session_patches.updates_need_no_start),
    BrokenServer(
        "a second start is worded otherwise", "ORDER", profile={"session": replace(_TEXTS, already_active=_IN_THE_WAY)}
    ),
    # FAILED
    BrokenServer("a failed update closes the session", "FAILED", profile={"failed_update_closes_session": True}),
    BrokenServer("unknown names inside are errors", "FAILED", profile={"unknown_inside_is_error": True}),
    BrokenServer("unknown names are ignored", "FAILED", patch=transfer_patches.names_are_taken_as_they_are),
    BrokenServer("any shape fits", "FAILED", patch=transfer_patches.any_shape_fits),
    # PAUSE, FLUSH
    BrokenServer("pause does not pause", "PAUSE", patch=session_patches.pause_does_not_pause),
    BrokenServer("pause says more", "PAUSE", rewrite=json_where(at("/pause"), lambda body: {**body, "mode": "abort"})),
    BrokenServer(
        "is_paused says more", "PAUSE", rewrite=json_where(at("/is_paused"), lambda body: {**body, "mode": "abort"})
    ),
    BrokenServer("resume says ok", "PAUSE", rewrite=json_where(at("/resume"), lambda body: {"status": "ok"})),
    BrokenServer("validation errors show no file", "PAUSE", profile={"endpoints": {}}),
    BrokenServer("a flush answers JSON", "FLUSH", rewrite=answers.json_for_empty("/reset_prefix_cache")),
    # QUEUE
    BrokenServer("the engine takes calls at once", "QUEUE", patch=session_patches.the_engine_takes_calls_at_once),
    # SYNC, BUCKET, PLANE
    BrokenServer("one bit of every broadcast is flipped", "SYNC", receiver=receivers.FlipsOneBit),
    BrokenServer("one bit of large tensors is flipped", "SYNC", receiver=receivers.FlipsOneTensor),
    BrokenServer(
        "tensors after the first are dropped", "SYNC", patch=transfer_patches.tensors_after_the_first_are_dropped
    ),
    BrokenServer("packed tensors are swapped", "BUCKET", patch=transfer_patches.packed_tensors_lose_their_names),
    BrokenServer("buffers are full at their size", "BUCKET", patch=transfer_patches.buffers_are_full_at_their_size),
    BrokenServer("buffers have no size", "BUCKET", patch=transfer_patches.buffers_have_no_size),
    BrokenServer("any view works", "BUCKET", patch=transfer_patches.any_view_works),
    BrokenServer("NCCL has every dtype", "BUCKET", patch=transfer_patches.nccl_has_every_dtype),
    BrokenServer("nothing is received", "PLANE", receiver=receivers.TakesNothing),
    BrokenServer("byte counts are forgiven", "PLANE", receiver=receivers.ForgivesTheByteCount),
    BrokenServer("refused updates eat a broadcast", "PLANE", patch=transfer_patches.refused_updates_eat_a_broadcast),
    # LAUNCH, DEAD: servers that the suite starts for these cases alone
    BrokenServer("dev mode is always on", "LAUNCH", patch=launch_patches.dev_mode_is_always_on, launched=True),
    BrokenServer(
        "a transfer config is always given",
        "LAUNCH",
        patch=launch_patches.a_transfer_config_is_always_given,
        launched=True,
    ),
    BrokenServer(
        "information needs dev mode", "LAUNCH", patch=launch_patches.information_needs_dev_mode, launched=True
    ),
    BrokenServer("missing keys are fine", "LAUNCH", patch=launch_patches.missing_keys_are_fine, launched=True),
    BrokenServer(
        "the engine outlives everything", "DEAD", patch=launch_patches.the_engine_outlives_everything, launched=True
    ),
]
