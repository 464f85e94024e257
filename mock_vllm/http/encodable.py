"""What cannot travel from vLLM's API process to its engine."""

from __future__ import annotations

from typing import Any


def check_encodable(value: Any) -> None:
    """Raise UnicodeEncodeError for a lone surrogate, as vLLM's message to its engine does (answered with 400)."""
    waiting = [value]
    while waiting:
        current = waiting.pop()
        if isinstance(current, str):
            current.encode()
        elif isinstance(current, dict):
            waiting += [*current, *current.values()]
        elif isinstance(current, list):
            waiting += current
