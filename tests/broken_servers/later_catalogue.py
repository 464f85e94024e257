"""Broken servers of a later release, for what the first one does not have."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mock_vllm.profiles.profile import Bodies, TorchTexts, Validation
from mock_vllm.profiles.v0_21_0 import PROFILE as V0_21_0
from tests.broken_servers import answers, later_patches, launch_patches
from tests.broken_servers.answers import at, json_where
from tests.broken_servers.broken_server import BrokenServer

RELEASE = "0.32.0"


def _later(name: str, family: str, **how: Any) -> BrokenServer:
    return BrokenServer(f"{RELEASE}: {name}", family, release=RELEASE, **how)


def _says(path: str, key: str, value: Any) -> Any:
    return json_where(at(path), lambda body: {**body, key: value})


def _refused_as(path: str, status: int) -> Any:
    return answers.status_as(at(path, 400), status)


LATER_BROKEN = [
    _later("bodies are parsed by hand", "UPDATE", profile={"bodies": Bodies.BY_HAND}),
    _later("validation errors show their place", "PAUSE", profile={"validation": Validation.WITH_PLACE}),
    _later("torch speaks as 2.11", "UPDATE", profile={"torch_texts": TorchTexts.TORCH_2_11}),
    _later(
        "packing belongs to the update", "INIT", profile={"packed_in_init": False, "update_info": V0_21_0.update_info}
    ),
    _later(
        "init knows no packing",
        "INIT",
        profile={"init_info": V0_21_0.init_info, "unique_id": False, "packed_in_init": False},
    ),
    _later("content types are bare", "INIT", patch=launch_patches.content_types_are_bare),
    _later("any rendezvous will do", "INIT", patch=later_patches.any_rendezvous_will_do),
    _later("packing is forgotten", "BUCKET", patch=later_patches.packing_is_forgotten),
    _later("packing outlasts its group", "INIT", patch=later_patches.packing_outlasts_its_group),
    _later("scalars cannot be unpacked", "BUCKET", profile={"unpacks_scalars": False}),
    _later("arrays go to every worker", "UPDATE", patch=later_patches.arrays_go_to_every_worker),
    _later("a failed update keeps the session", "FAILED", profile={"failed_update_closes_session": False}),
    _later("a blind retry is harmless", "FAILED", patch=later_patches.a_start_forgets_what_a_failed_session_buffered),
    _later("unknown names inside are ignored", "FAILED", profile={"unknown_inside_is_error": False}),
    _later("a flush answers nothing", "FLUSH", profile={"flush_answers_json": False}),
    _later("sleep answers nothing", "PAUSE", profile={"sleep_answers_json": False}),
    _later("an old parameter of pause is judged", "PAUSE", profile={"waits_by_parameter": True}),
    _later("finish forgets the label", "VERSION", patch=later_patches.finish_forgets_the_label),
    _later("the label is set before the finish", "VERSION", patch=later_patches.the_label_is_set_before_the_finish),
    _later("the label is answered at once", "QUEUE", patch=later_patches.the_label_is_answered_at_once),
    _later("weight_info says more", "VERSION", rewrite=_says("/weight_info", "at", 0)),
    _later(
        "a new label says less",
        "VERSION",
        rewrite=json_where(at("/update_weight_version"), lambda body: {"success": True}),
    ),
    _later("a refused label is 422", "VERSION", rewrite=_refused_as("/update_weight_version", 422)),
    _later(
        "labels are not found by another method",
        "VERSION",
        rewrite=answers.status_as(lambda answer: answer.status == 405, 404),
    ),
    _later("a refused finish is 422", "FINISH", rewrite=_refused_as("/finish_weight_update", 422)),
    _later("an abort counts nothing", "ABORT", rewrite=_says("/abort_requests", "aborted", 0)),
    _later("an abort says done", "ABORT", rewrite=_says("/abort_requests", "status", "done")),
    _later("a refused abort is 422", "ABORT", rewrite=_refused_as("/abort_requests", 422)),
    _later("a failed abort is 400", "ABORT", rewrite=answers.status_as(at("/abort_requests", 500), 400)),
    _later("a draft session opens", "DRAFT", patch=later_patches.a_draft_session_opens),
    _later("a shutdown is always possible", "SHUTDOWN", patch=later_patches.a_shutdown_is_always_possible),
    _later("a shutdown keeps the group", "SHUTDOWN", patch=later_patches.a_shutdown_keeps_the_group),
    _later("a shutdown says less", "SHUTDOWN", rewrite=_says("/shutdown_weight_transfer_engine", "message", "ok")),
    _later("checksums see no session", "CHECKER", patch=later_patches.checksums_see_no_session),
    _later(
        "checksums have no prefix",
        "CHECKER",
        rewrite=json_where(at("/weight_checker"), lambda body: {"checksums": {}} if "checksums" in body else body),
    ),
    _later(
        "comparisons always match",
        "CHECKER",
        rewrite=json_where(at("/weight_checker"), lambda body: {**body, "match": True} if "match" in body else body),
    ),
    _later(
        "a reset says more",
        "CHECKER",
        rewrite=json_where(at("/weight_checker"), lambda body: {"status": "zeroed"} if "status" in body else body),
    ),
    _later("a refused check is 422", "CHECKER", rewrite=_refused_as("/weight_checker", 422)),
    _later(
        "completions say less",
        "DEAD",
        rewrite=json_where(
            at("/v1/completions"), lambda body: {key: value for key, value in body.items() if key != "usage"}
        ),
    ),
    _later("finish is worded as in 0.21", "FINISH", profile={"session": replace(V0_21_0.session)}),
]
