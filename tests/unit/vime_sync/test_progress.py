"""The bar on a terminal, and lines elsewhere."""

from __future__ import annotations

import io

import pytest

from vime_sync.progress import ProgressBar

pytestmark = pytest.mark.unit


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_line_says_bytes_rate_bucket_and_time_left() -> None:
    clock = Clock()
    bar = ProgressBar(io.StringIO(), clock=clock)
    bar.begin(100 << 20, 4)
    bar.bucket(1)
    clock.now += 2.0
    bar.advance(25 << 20)
    assert bar.line() == "[######..................]  25%  25.0 MiB of 100.0 MiB  12.5 MiB/s  bucket 2 of 4  6 s left"


def test_elsewhere_a_plain_line_comes_every_few_seconds() -> None:
    clock, out = Clock(), io.StringIO()
    bar = ProgressBar(out, clock=clock)
    bar.begin(1000, 1)
    for _ in range(100):
        clock.now += 0.125
        bar.advance(10)
    bar.end()
    lines = out.getvalue().splitlines()
    assert len(lines) == 2
    assert all("\r" not in line and "bucket 1 of 1" in line for line in lines)


def test_a_terminal_is_redrawn_in_place_and_ends_complete() -> None:
    clock, out = Clock(), Terminal()
    bar = ProgressBar(out, clock=clock)
    bar.begin(1000, 1)
    clock.now += 1.0
    bar.advance(1000)
    bar.end()
    bar.end()
    text = out.getvalue()
    assert text.count("\n") == 1
    assert text.endswith("\n")
    assert "100%" in text.rsplit("\r", 1)[1]


def test_redrawing_is_bounded_in_rate() -> None:
    clock, out = Clock(), Terminal()
    bar = ProgressBar(out, clock=clock)
    bar.begin(10_000, 1)
    for _ in range(1000):
        clock.now += 0.001
        bar.advance(1)
    assert out.getvalue().count("\r") <= 12


def test_a_note_is_a_line_of_its_own() -> None:
    clock, out = Clock(), Terminal()
    bar = ProgressBar(out, clock=clock)
    bar.note("first")
    assert out.getvalue() == "first\n"
    bar.begin(1000, 1)
    bar.note("second")
    assert out.getvalue().endswith("left\nsecond\n")


def test_nothing_is_divided_by_zero() -> None:
    out = Terminal()
    bar = ProgressBar(out, clock=Clock())
    bar.end()
    assert out.getvalue() == ""
    bar.begin(0, 0)
    bar.end()
    assert "100%" in out.getvalue()
