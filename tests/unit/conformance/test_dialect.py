"""A case in the words of another release."""

from __future__ import annotations

import pytest

from conformance.case import RELEASES, Case
from conformance.cases import all_cases
from conformance.cases.common import FINISH, INIT, START, filled, ignored
from conformance.dialect import DialectError, cases_for, in_release
from conformance.request_data import broadcasts_of, describe, init_body, update_body
from conformance.steps import Begin, Holds, Init, Step, Update

pytestmark = pytest.mark.unit

ONE, TWO = ignored("one", "float32", 2), ignored("two", "uint8", 5)


def said(*steps: Step, release: str = "0.32.0") -> tuple[Step, ...]:
    return in_release(Case("X-001", "a sentence", steps, "routes", "source"), release).steps


def test_in_the_first_release_a_case_stays_as_it_is() -> None:
    for case in all_cases():
        if "0.21.0" in case.applies_to:
            assert in_release(case, "0.21.0") == case


def test_packing_is_said_by_the_init_of_the_group() -> None:
    packed = Update((ONE, TWO), packed=True, buffer_bytes=8, announce={"packed_num_buffers": 3})
    init, start, update, again, plain = said(INIT, START, packed, INIT, Update((TWO,)))
    assert isinstance(init, Init)
    assert isinstance(update, Update)
    assert isinstance(again, Init)
    assert isinstance(plain, Update)
    assert init.info == {"packed": True, "packed_buffer_size_bytes": 8, "packed_num_buffers": 3}
    assert again.info == {}
    assert sorted(update_body(update)["update_info"]) == ["dtype_names", "names", "shapes"]  # type: ignore[call-overload]
    assert broadcasts_of(update) == broadcasts_of(packed)
    assert start == START
    assert "packed" in describe(init)
    assert "packed" not in describe(update)
    assert init_body(again) == init_body(INIT)


def test_a_begun_init_is_told_as_well() -> None:
    begun, update = said(Begin("init", INIT), Begin("update", Update((ONE,), packed=True)))
    assert isinstance(begun, Begin)
    assert isinstance(begun.step, Init)
    assert begun.step.info == {"packed": True}
    assert isinstance(update, Begin)
    assert isinstance(update.step, Update)
    assert update.step.packed_at_init


def test_one_group_has_one_way() -> None:
    with pytest.raises(DialectError, match=r"X-001 cannot be said in 0\.32\.0: packing is said once"):
        said(INIT, START, Update((ONE,)), Update((TWO,), packed=True), FINISH)
    assert said(INIT, Update((ONE,)), Update((TWO,), packed=True), release="0.27.1")


def test_names_that_no_release_ignores_become_names_that_every_loader_drops() -> None:
    inside = filled("model.nope", "float32", 4)
    update, holds = said(Update((ONE, inside)), Holds((TWO,)))
    assert isinstance(update, Update)
    assert [tensor.name for tensor in update.tensors] == ["model.one.rotary_emb.inv_freq", "model.nope"]
    assert [tensor.data for tensor in update.tensors] == [ONE.data, inside.data]
    assert isinstance(holds, Holds)
    assert holds.tensors[0].name == "model.two.rotary_emb.inv_freq"
    (kept,) = said(Update((ONE,)), release="0.24.0")
    assert isinstance(kept, Update)
    assert kept.tensors == (ONE,)


@pytest.mark.parametrize("release", RELEASES)
def test_every_case_can_be_said_in_every_release_that_it_applies_to(release: str) -> None:
    written = {case.id: case for case in all_cases()}
    for case in cases_for(release):
        original = written[case.id]
        assert [type(step) for step in case.steps] == [type(step) for step in original.steps], case.id


def test_a_case_of_one_release_is_written_in_its_words() -> None:
    (case,) = [case for case in all_cases() if case.id == "UPDATE-061"]
    assert in_release(case, "0.32.0") == case
