"""Where deadlines come from."""

from __future__ import annotations

import math

import pytest

from vime_sync.errors import SettingError
from vime_sync.timeouts import HTTP_TIMEOUT_VARIABLE, UPDATE_TIMEOUT_VARIABLE, Timeouts

pytestmark = pytest.mark.unit

BOTH = {UPDATE_TIMEOUT_VARIABLE: "20", HTTP_TIMEOUT_VARIABLE: "30"}


def test_the_names_are_those_of_the_trainer() -> None:
    assert UPDATE_TIMEOUT_VARIABLE == "SLIME_VLLM_WEIGHT_TRANSFER_UPDATE_TIMEOUT_SEC"
    assert HTTP_TIMEOUT_VARIABLE == "SLIME_VLLM_WEIGHT_TRANSFER_HTTP_TIMEOUT_SEC"


@pytest.mark.parametrize(
    ("argument", "environ", "total"),
    [
        (7.0, BOTH, 7.0),
        (None, BOTH, 20.0),
        (None, {HTTP_TIMEOUT_VARIABLE: "30"}, 30.0),
        (None, {UPDATE_TIMEOUT_VARIABLE: "", HTTP_TIMEOUT_VARIABLE: " 1.5 "}, 1.5),
        (None, {}, 900.0),
    ],
)
def test_argument_then_update_then_http_then_default(
    argument: float | None, environ: dict[str, str], total: float
) -> None:
    resolved = Timeouts.resolve(argument, environ=environ)
    assert resolved.total == total
    assert resolved.read == total
    assert resolved.connect == min(10.0, total)


@pytest.mark.parametrize("text", ["soon", "nan", "inf", "-1", "0", "1e9", "10s"])
def test_a_bad_variable_is_an_error_that_names_it(text: str) -> None:
    with pytest.raises(SettingError, match=UPDATE_TIMEOUT_VARIABLE) as caught:
        Timeouts.resolve(environ={UPDATE_TIMEOUT_VARIABLE: text, HTTP_TIMEOUT_VARIABLE: "5"})
    assert isinstance(caught.value, ValueError)


def test_a_bad_variable_does_not_matter_when_the_argument_decides() -> None:
    assert Timeouts.resolve(3, environ={UPDATE_TIMEOUT_VARIABLE: "soon"}).total == 3.0


@pytest.mark.parametrize("value", [0, -1, math.nan, math.inf, True, "5"])
def test_bad_values_are_refused_at_construction(value: object) -> None:
    with pytest.raises(SettingError):
        Timeouts(total=value)  # type: ignore[arg-type]
