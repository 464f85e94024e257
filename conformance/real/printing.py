"""Progress as lines for people: a step, dots while it takes, its seconds."""

from __future__ import annotations

import sys
from typing import TextIO

_DOT_SECONDS = 5.0


class Printer:
    """A `Reporter` that writes to ``output``. ``heading`` is written before the first line, if there is one."""

    def __init__(self, heading: str = "", output: TextIO | None = None) -> None:
        self._heading, self._output = heading, output or sys.stdout
        self._dots = 0
        self._open = False

    def step(self, number: int, total: int, title: str) -> None:
        """Begins a line."""
        self._head()
        self._close()
        self._write(f"[{number}/{total}] {title} ")
        self._open, self._dots = True, 0

    def tick(self, seconds: float) -> None:
        """Adds a dot every five seconds."""
        while self._dots < int(seconds / _DOT_SECONDS):
            self._write(".")
            self._dots += 1

    def done(self, seconds: float) -> None:
        """Ends the line."""
        self._write(f" {seconds:.0f} s\n")
        self._open = False

    def note(self, text: str) -> None:
        """A line of its own."""
        self._head()
        self._close()
        self._write(f"      {text}\n")

    def _head(self) -> None:
        if self._heading:
            self._write(f"{self._heading}\n")
            self._heading = ""

    def _close(self) -> None:
        if self._open:
            self._write("\n")
            self._open = False

    def _write(self, text: str) -> None:
        self._output.write(text)
        self._output.flush()
