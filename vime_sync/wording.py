"""Numbers and lists as a message says them."""

from __future__ import annotations

from collections.abc import Sequence


def counted(number: int, noun: str) -> str:
    """A number with its noun, which takes an `s` unless it is one: `1 bucket`, `2 buckets`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def some(names: Sequence[str], most: int = 5) -> str:
    """The first names, and how many more there are: `a, b and 3 more`."""
    shown = ", ".join(names[:most])
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown


def ranks(numbers: Sequence[int]) -> str:
    """Ranks for a message, bounded: `1, 2, 3`, or `none`."""
    if not numbers:
        return "none"
    shown = ", ".join(str(number) for number in list(numbers)[:16])
    return shown if len(numbers) <= 16 else f"{shown} … ({len(numbers)} in all)"
