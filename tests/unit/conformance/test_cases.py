"""The case list as a whole, and how steps become requests."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter

import pytest

from conformance.case import RELEASES
from conformance.cases import all_cases
from conformance.cases.common import filled, ignored
from conformance.dialect import cases_for
from conformance.request_data import broadcasts_of, describe, init_body, request_text, requests_of, resolve, update_body
from conformance.requirements import REQUIREMENTS
from conformance.steps import AnswerOf, Begin, Call, Init, Placeholder, StillPending, Update
from conformance.truth import load, problems, recorded_releases

pytestmark = pytest.mark.unit

AREAS = {
    *("HTTP", "INIT", "START", "UPDATE", "FINISH", "ORDER", "FAILED"),
    *("PAUSE", "FLUSH", "QUEUE", "SYNC", "BUCKET", "PLANE"),
    *("VERSION", "SHUTDOWN", "ABORT", "DRAFT", "CHECKER", "DEAD", "LAUNCH"),
}


def test_ids_are_unique_and_of_known_areas() -> None:
    ids = [case.id for case in all_cases()]
    assert [case_id for case_id, count in Counter(ids).items() if count > 1] == []
    assert [case_id for case_id in ids if not re.fullmatch(r"[A-Z]+-\d{3}", case_id)] == []
    assert {case_id.split("-")[0] for case_id in ids} == AREAS


@pytest.mark.parametrize("release", RELEASES)
def test_no_two_cases_send_the_same_requests(release: str) -> None:
    by_requests: dict[object, list[str]] = {}
    for case in cases_for(release):
        by_requests.setdefault((case.launch, requests_of(case.steps)), []).append(case.id)
    assert [ids for ids in by_requests.values() if len(ids) > 1] == []


@pytest.mark.parametrize("release", RELEASES)
def test_sentences_are_unique_in_their_area(release: str) -> None:
    sentences = Counter((case.id.split("-")[0], case.sentence) for case in cases_for(release))
    assert [key for key, count in sentences.items() if count > 1] == []


def test_every_case_has_a_sentence_a_source_and_a_release() -> None:
    for case in all_cases():
        assert case.steps, case.id
        assert case.sentence, case.id
        assert not case.sentence.endswith("."), case.id
        assert case.source, case.id
        assert case.applies_to, case.id
        assert set(case.applies_to) <= set(RELEASES), case.id


def test_every_requirement_has_a_case_and_every_case_a_requirement() -> None:
    used = {case.requirement for case in all_cases()}
    assert sorted(used - set(REQUIREMENTS)) == []
    assert sorted(set(REQUIREMENTS) - used) == []


def test_a_begun_request_is_answered_before_its_case_ends() -> None:
    # A request that is left behind could change the next case.
    for case in all_cases():
        begun = {step.label for step in case.steps if isinstance(step, Begin)}
        answered = {step.label for step in case.steps if isinstance(step, AnswerOf)}
        assert begun == answered, case.id


def test_cases_that_touch_a_group_say_that_they_need_the_plane() -> None:
    for case in all_cases():
        inner = [step.step if isinstance(step, Begin) else step for step in case.steps]
        if any(isinstance(step, Init) for step in inner):
            assert "data plane" in case.needs, case.id
        if any(isinstance(step, Update) and broadcasts_of(step) for step in inner):
            assert any(isinstance(step, Init) for step in inner), case.id


@pytest.mark.parametrize("release", recorded_releases())
def test_the_recorded_truth_fits_the_cases(release: str) -> None:
    assert problems(load(release), all_cases()) == []


def test_boundaries_exist_plain_and_packed() -> None:
    for case in all_cases():
        if case.id.startswith("BUCKET"):
            packed = {
                update_body(step)["update_info"].get("packed", False) for step in case.steps if isinstance(step, Update)
            }  # type: ignore[attr-defined]
            assert packed == {case.sentence.endswith("(packed)")}, case.id


def test_an_update_becomes_lists_and_broadcasts() -> None:
    tensors = (filled("a", "float32", 2), filled("b", "uint8", 5), filled("c", "bfloat16"))
    plain = Update(tensors)
    assert update_body(plain) == {
        "update_info": {
            "names": ["a", "b", "c"],
            "dtype_names": ["float32", "uint8", "bfloat16"],
            "shapes": [[2], [5], []],
        }
    }
    assert [len(data) for data in broadcasts_of(plain)] == [8, 5, 2]
    packed = Update(tensors, packed=True, buffer_bytes=8)
    assert update_body(packed)["update_info"]["packed_buffer_size_bytes"] == 8  # type: ignore[index]
    assert [len(data) for data in broadcasts_of(packed)] == [13, 2]
    assert broadcasts_of(packed)[0] == tensors[0].data + tensors[1].data
    assert broadcasts_of(Update(tensors, broadcasts=())) == ()


def test_an_init_names_what_only_a_run_knows() -> None:
    body = init_body(Init(info={"rank_offset": 2}, drop=("world_size",), beside={"x": 1}))
    known = {Placeholder.ADDRESS: "10.0.0.1", Placeholder.PORT: 4711}
    assert resolve(body, known) == {
        "init_info": {"master_address": "10.0.0.1", "master_port": 4711, "rank_offset": 2},
        "x": 1,
    }


@pytest.mark.parametrize(
    ("step", "text"),
    [
        (Call("POST", "/x", json={"a": None}), 'POST /x {"a": null}'),
        (Call("POST", "/x"), "POST /x"),
        (Call("POST", "/x", raw=b"{\xff"), "POST /x '{\\xff'"),
        (Call("POST", "/x", json={}, content_type=None), "POST /x {} (no content type)"),
        (Call("POST", "/x", json={}, content_type="text/plain"), "POST /x {} (text/plain)"),
        (StillPending(("a", "b")), "still pending: [a], [b]"),
        (Begin("a", Call("GET", "/y")), "[a] GET /y"),
    ],
)
def test_steps_have_a_line_each(step: Call | StillPending | Begin, text: str) -> None:
    assert describe(step) == text


def test_a_long_body_is_cut_with_its_digest() -> None:
    many = Update(tuple(ignored(f"long.{index}", "float32", 1) for index in range(40)))
    other = Update((*many.tensors[:-1], ignored("long.other", "float32", 1)))
    assert len(request_text(many)) < 700
    assert "sha256" in request_text(many)
    assert request_text(many) != request_text(other)


def test_filled_tensors_are_finite_whatever_their_format() -> None:
    torch = pytest.importorskip("torch")
    for dtype in ("float16", "bfloat16", "float32", "float64", "float8_e4m3fn", "float8_e5m2"):
        tensor = filled(dtype, dtype, 64)
        values = torch.frombuffer(bytearray(tensor.data), dtype=getattr(torch, dtype)).to(torch.float64)
        assert bool(torch.isfinite(values).all()), dtype
        assert int(values.unique().numel()) > 16, dtype


def test_list_cases_prints_every_case_and_runs_nothing() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "conformance", "--list-cases", "--target=real"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[-1].startswith(f"{len(all_cases())} cases; recorded: ")
    assert [line.split()[0] for line in lines[:-1]] == sorted(case.id for case in all_cases())
    order = next(line for line in lines if line.startswith("ORDER-001"))
    assert order == (
        "ORDER-001  contract  0.21.0,0.32.0  a second start is refused  "
        "[vllm.v1.worker.gpu_worker.Worker.start_weight_update]"
    )
