"""Validation errors in the form of later releases."""

from __future__ import annotations

import pytest

from mock_vllm.http.validation_summary import hide_paths, summarise

pytestmark = pytest.mark.unit


def test_inputs_are_shortened_and_locations_dotted() -> None:
    errors = [
        {"type": "dict_type", "loc": ("body", "baseline", "dict[str,str]"), "msg": "no", "input": [1]},
        {"type": "string_type", "loc": ("body", "x", "str"), "msg": "no", "input": "y" * 300},
    ]
    message, param = summarise(errors)
    assert param == "body.baseline"
    assert message.startswith("2 validation errors:\n  {'type': 'dict_type', 'loc': 'body.baseline', 'msg': 'no', ")
    assert "'input': '<list of 1 items>'" in message
    assert "y" * 200 + "...[truncated]" in message


def test_null_is_said_to_be_missing_once() -> None:
    errors = [
        {"type": kind, "loc": ("body", "update_info", kind), "msg": "no", "input": None} for kind in ("dict", "list")
    ]
    assert summarise(errors) == (
        "1 validation error:\n"
        "  {'type': 'missing', 'loc': 'body.update_info', 'msg': 'Field required', 'input': 'None'}",
        "body.update_info",
    )


def test_at_most_ten_are_shown() -> None:
    errors = [{"type": "t", "loc": ("query", str(n)), "msg": "m", "input": n} for n in range(12)]
    assert summarise(errors)[0].endswith("...and 2 more errors")


@pytest.mark.parametrize(
    ("message", "clean"),
    [
        ("see http://www.nvidia.com/Download/index.aspx", "see http://www.nvidia.com<path>"),
        ('broken\n  File "/a/b.py", line 3, in f\n    code', "broken"),
        ("<object at 0x7f00aa>", "<object>"),
        ("cannot open /usr/lib/x", "cannot open <path>"),
    ],
)
def test_paths_are_hidden(message: str, clean: str) -> None:
    assert hide_paths(message) == clean
