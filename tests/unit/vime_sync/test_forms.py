"""Which form a round takes, release by release."""

from __future__ import annotations

import re

import pytest

from tests.support.arrays import Array
from vime_sync.errors import SettingError, UnsupportedTensor
from vime_sync.forms import choose_form
from vime_sync.releases import release_of

pytestmark = pytest.mark.unit

SCALAR = Array("scalar", "float32", ())  # cannot be packed before 0.32
MASK = Array("mask", "bool", (3,))  # NCCL knows no bool
FLAG = Array("flag", "bool", ())  # neither before 0.32
WEIGHT = Array("weight", "bfloat16", (4,))


def names(tensors: tuple[object, ...]) -> list[str]:
    return [tensor.name for tensor in tensors]  # type: ignore[attr-defined]


@pytest.mark.parametrize("version", ["0.21.0", "0.27.0", "0.28.0", "0.31.0", "0.32.0"])
@pytest.mark.parametrize("packed", [None, True, False])
def test_an_ordinary_model_travels_as_asked_and_packed_by_default(version: str, packed: bool | None) -> None:
    form = choose_form([WEIGHT], release_of(version), packed=packed)
    assert form.packed is (packed is not False)
    assert (names(form.packed_ones), names(form.plain_ones)) == (
        (["weight"], []) if packed is not False else ([], ["weight"])
    )
    assert form.reason is None


@pytest.mark.parametrize("version", ["0.21.0", "0.27.0"])
@pytest.mark.parametrize(
    ("packed", "packed_ones", "plain_ones", "why"),
    [
        (None, ["weight", "mask"], ["scalar"], r"cannot be packed .*scalar \(float32 \[\]\)"),
        (True, ["weight", "mask"], ["scalar"], "cannot be packed .*scalar"),
        (False, ["mask"], ["scalar", "weight"], r"cannot travel by themselves .*mask \(bool \[3\]\)"),
    ],
)
def test_up_to_0_27_a_round_may_have_both_forms(
    version: str, packed: bool | None, packed_ones: list[str], plain_ones: list[str], why: str
) -> None:
    form = choose_form([SCALAR, WEIGHT, MASK], release_of(version), packed=packed)
    assert (names(form.packed_ones), names(form.plain_ones)) == (packed_ones, plain_ones)
    assert re.search(why, form.reason or "")


@pytest.mark.parametrize("version", ["0.28.0", "0.31.0"])
def test_a_scalar_makes_the_round_plain_where_that_was_left_open(version: str) -> None:
    form = choose_form([SCALAR, WEIGHT], release_of(version), packed=None)
    assert (form.packed, names(form.packed_ones), names(form.plain_ones)) == (False, [], ["scalar", "weight"])
    assert "scalar (float32 [])" in (form.reason or "")
    assert version in (form.reason or "")


@pytest.mark.parametrize("version", ["0.28.0", "0.31.0"])
def test_a_scalar_is_refused_where_packing_was_asked_for(version: str) -> None:
    with pytest.raises(UnsupportedTensor, match=r"cannot receive scalar \(float32 \[\]\) packed") as caught:
        choose_form([SCALAR, WEIGHT], release_of(version), packed=True)
    assert "--no-packed" in (caught.value.next_step or "")


def test_a_scalar_is_packed_from_0_32_on() -> None:
    form = choose_form([SCALAR, FLAG, WEIGHT], release_of("0.32.0"), packed=None)
    assert (form.packed, names(form.packed_ones), form.reason) == (True, ["scalar", "flag", "weight"], None)


@pytest.mark.parametrize("version", ["0.28.0", "0.31.0", "0.32.0"])
def test_what_nccl_lacks_is_refused_without_packing(version: str) -> None:
    with pytest.raises(UnsupportedTensor, match=r"cannot receive mask \(bool \[3\]\) without packing") as caught:
        choose_form([MASK, WEIGHT], release_of(version), packed=False)
    assert "--packed" in (caught.value.next_step or "")
    assert choose_form([MASK, WEIGHT], release_of(version), packed=None).packed is True


@pytest.mark.parametrize("packed", [None, True, False])
def test_a_round_that_no_one_form_carries_is_refused_with_both_names(packed: bool | None) -> None:
    with pytest.raises(UnsupportedTensor, match="packed excludes scalar .*plain excludes mask") as caught:
        choose_form([SCALAR, WEIGHT, MASK], release_of("0.28.0"), packed=packed)
    assert "convert" in (caught.value.next_step or "")


@pytest.mark.parametrize("version", ["0.21.0", "0.28.0"])
def test_what_neither_form_carries_is_refused_by_name(version: str) -> None:
    with pytest.raises(UnsupportedTensor, match=r"flag \(bool \[\]\) in any form"):
        choose_form([FLAG, WEIGHT], release_of(version), packed=None)


def test_a_name_that_comes_twice() -> None:
    with pytest.raises(SettingError, match="'weight' comes twice"):
        choose_form([WEIGHT, WEIGHT], release_of("0.32.0"), packed=None)
