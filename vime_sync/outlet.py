"""Standard output and error as a push may use them: what becomes of a line must not decide what becomes of a push."""

from __future__ import annotations

import contextlib
import os
from typing import TextIO


class Outlet:
    """A text stream that never raises. `failed` says that something written to it was lost.

    stream  None where the process was started without it; what is written is dropped then

    Characters that the stream's encoding lacks are written as backslash escapes.
    """

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream
        self.failed = False

    def write(self, text: str) -> int:
        """Writes `text`, unless the stream was found unusable before."""
        if self._stream is None or self.failed:
            self.failed = True
            return len(text)
        try:
            try:
                self._stream.write(text)
            except UnicodeEncodeError:
                encoding = self._stream.encoding or "ascii"
                self._stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
        except (OSError, ValueError):  # full, a pipe without a reader; closed
            self._lose()
        return len(text)

    def flush(self) -> None:
        """Hands over what was written."""
        if self._stream is None or self.failed:
            return
        try:
            self._stream.flush()
        except (OSError, ValueError):
            self._lose()

    def isatty(self) -> bool:
        """Whether a terminal is behind it."""
        try:
            return self._stream is not None and self._stream.isatty()
        except (OSError, ValueError):
            return False

    def _lose(self) -> None:
        """Lets what the stream still holds go to nowhere: the interpreter writes it out at its end, and would complain.

        A stream without a descriptor is left alone.
        """
        self.failed = True
        with contextlib.suppress(OSError, ValueError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            try:
                if self._stream is not None:
                    os.dup2(nowhere, self._stream.fileno())
            finally:
                os.close(nowhere)
