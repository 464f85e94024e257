"""Shapes that torch refuses, in the words recorded from vLLM 0.21.0 with torch 2.11."""

from __future__ import annotations

from typing import Any

import pytest

from mock_vllm.engine.shapes import check_empty, check_view
from mock_vllm.errors import WorkerError

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(("size", "shape"), [([2, 3], (2, 3)), ([], ()), ([0, 4], (0, 4)), (2, (2,))])
def test_shapes_that_are_some(size: Any, shape: tuple[int, ...]) -> None:
    assert check_empty(size, 4) == shape


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (
            ["a"],
            "empty() received an invalid combination of arguments - got (list, device=str, dtype=torch.dtype), but",
        ),
        ("2", "empty() received an invalid combination of arguments - got (str, device=str, dtype=torch.dtype), but"),
        (None, "empty() received an invalid combination of arguments - got (NoneType, device=str, dtype=torch"),
        ({}, "empty() received an invalid combination of arguments - got (dict, device=str, dtype=torch.dtype), but"),
        (
            [2.0],
            "empty() received an invalid combination of arguments - got (list, device=str, dtype=torch.dtype), but",
        ),
        (
            [True],
            "empty() received an invalid combination of arguments - got (list, device=str, dtype=torch.dtype), but",
        ),
        (2.5, "empty() received an invalid combination of arguments - got (float, device=str, dtype=torch.dtype), but"),
        ([-1, 4], "Trying to create tensor with negative dimension -1: [-1, 4]"),
        (-16, "Trying to create tensor with negative dimension -16: [-16]"),
        ([1 << 62], "Storage size calculation overflowed with sizes=[4611686018427387904]"),
        ([1 << 63], "empty(): argument 'size' failed to unpack the object at pos 1"),
        (
            [1 << 45],
            "[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory: "
            "you tried to allocate 140737488355328 bytes. Error code 12 (Cannot allocate memory)",
        ),
    ],
)
def test_shapes_that_are_none(size: Any, text: str) -> None:
    with pytest.raises(WorkerError) as caught:
        check_empty(size, 4)
    assert str(caught.value).startswith(text)


@pytest.mark.parametrize(
    ("shape", "text"),
    [
        (
            (),
            "view() received an invalid combination of arguments - got (), but expected one of:\n"
            " * (torch.dtype dtype)\n * (tuple of ints size)\n",
        ),
        (
            (True,),
            "view() received an invalid combination of arguments - got (bool), but expected one of:\n"
            " * (torch.dtype dtype)\n      didn't match because some of the arguments have invalid types: (!bool!)\n"
            " * (tuple of ints size)\n      didn't match because some of the arguments have invalid types: (!bool!)\n",
        ),
        ((-1, -2), "invalid shape dimension -2 at index 1 of shape [-1, -2]"),
    ],
)
def test_views_that_fail(shape: tuple[Any, ...], text: str) -> None:
    with pytest.raises(WorkerError) as caught:
        check_view(shape)
    assert str(caught.value) == text


def test_views_that_work() -> None:
    check_view((2, 3))
    check_view((0,))
