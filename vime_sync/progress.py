"""Showing how far a push is."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol, TextIO

from vime_sync.outlet import Outlet
from vime_sync.sizes import format_bytes

_BAR_WIDTH = 24
_REDRAW_SECONDS = 0.1
_LINE_SECONDS = 5.0


class Progress(Protocol):
    """Told by a push what happens. Every method is called from the thread that pushes."""

    def note(self, text: str) -> None:
        """A sentence for people, which something waits for."""
        ...

    def begin(self, nbytes: int, buckets: int) -> None:
        """The tensors begin to travel: bytes and buckets in all."""
        ...

    def bucket(self, index: int) -> None:
        """A bucket begins, from 0."""
        ...

    def advance(self, nbytes: int) -> None:
        """So many more bytes are handed over."""
        ...

    def end(self) -> None:
        """Nothing more comes, after success or failure. May come without `begin`."""
        ...


class Silent:
    """No progress."""

    def note(self, text: str) -> None:
        """See Progress."""

    def begin(self, nbytes: int, buckets: int) -> None:
        """See Progress."""

    def bucket(self, index: int) -> None:
        """See Progress."""

    def advance(self, nbytes: int) -> None:
        """See Progress."""

    def end(self) -> None:
        """See Progress."""


class ProgressBar:
    """A bar that redraws itself on a terminal, and a plain line every few seconds elsewhere."""

    def __init__(self, stream: TextIO | Outlet, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._clock = clock
        self._terminal = stream.isatty()
        self._total = self._done = self._buckets = 0
        self._bucket = 0
        self._began = self._shown = 0.0
        self._drawn = 0

    def note(self, text: str) -> None:
        """See Progress."""
        self._stream.write(("\n" if self._drawn else "") + text + "\n")
        self._stream.flush()
        self._drawn = 0

    def begin(self, nbytes: int, buckets: int) -> None:
        """See Progress."""
        self._total, self._buckets, self._done = nbytes, buckets, 0
        self._began = self._shown = self._clock()
        if self._terminal:
            self._show()

    def bucket(self, index: int) -> None:
        """See Progress."""
        self._bucket = index
        self._show_now_and_then()

    def advance(self, nbytes: int) -> None:
        """See Progress."""
        self._done += nbytes
        self._show_now_and_then()

    def end(self) -> None:
        """See Progress."""
        if self._terminal and self._drawn:
            self._show()
            self._stream.write("\n")
            self._stream.flush()
        self._drawn = 0

    def line(self) -> str:
        """Where it stands: bar, bytes, rate, bucket, time left."""
        share = self._done / self._total if self._total else 1.0
        elapsed = self._clock() - self._began
        rate = self._done / elapsed if elapsed > 0 else 0.0
        left = f"{(self._total - self._done) / rate:.0f} s left" if rate > 0 else "? s left"
        full = int(share * _BAR_WIDTH)
        bar = "#" * full + "." * (_BAR_WIDTH - full)
        return (
            f"[{bar}] {share:4.0%}  {format_bytes(self._done)} of {format_bytes(self._total)}  "
            f"{format_bytes(rate)}/s  bucket {self._bucket + 1} of {self._buckets}  {left}"
        )

    def _show_now_and_then(self) -> None:
        wait = _REDRAW_SECONDS if self._terminal else _LINE_SECONDS
        if self._clock() - self._shown >= wait:
            self._show()

    def _show(self) -> None:
        self._shown = self._clock()
        text = self.line()
        if self._terminal:
            self._stream.write("\r" + text.ljust(self._drawn))
            self._drawn = len(text)
        else:
            self._stream.write(text + "\n")
        self._stream.flush()
