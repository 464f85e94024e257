"""A command that cannot outlive this process, nor leave a process of its own behind."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import IO

from conformance.real import guardian


class Guarded:
    """``command`` under a `conformance.real.guardian`, its output in ``output``, its input empty.

    ``grace``: seconds between the SIGTERM of `stop` and the SIGKILL. Raises OSError when nothing can be started.
    """

    def __init__(self, command: Sequence[str], output: IO[bytes], env: Mapping[str, str], grace: float) -> None:
        self._grace = grace
        # A session of its own: Ctrl-C in a terminal goes to the caller alone, who then ends the command in order.
        self._guardian = subprocess.Popen(
            [sys.executable, "-S", "-E", guardian.__file__, f"{grace:g}", *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=output,
            env=dict(env),
            start_new_session=True,
        )
        self._status: int | None = None

    def pid(self, seconds: float) -> int | None:
        """The command's process id, told once; None when it could not be started within ``seconds``."""
        words = self._read_line(seconds)
        return int(words[1]) if len(words) == 2 and words[0] == "pid" else None

    def ended(self, seconds: float = 0.0) -> int | None:
        """The command's exit status, negative for a signal, once it has ended; None after ``seconds`` without that."""
        if self._status is None:
            words = self._read_line(seconds)
            if len(words) == 2 and words[0] == "ended":
                self._status = int(words[1])
            elif self._guardian.poll() is not None:
                self._status = self._guardian.returncode
        return self._status

    def gone(self) -> bool:
        """Whether the guardian has ended, and with it everything that it guarded."""
        return self._guardian.poll() is not None

    def stop(self) -> None:
        """Ends the command and all that came of it, and waits until they are gone. May be called again."""
        assert self._guardian.stdin is not None
        assert self._guardian.stdout is not None
        self._guardian.stdin.close()
        try:
            self._guardian.wait(self._grace + 10.0)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._guardian.pid, signal.SIGKILL)
            self._guardian.wait(5.0)
        finally:
            self._guardian.stdout.close()

    def _read_line(self, seconds: float) -> list[str]:
        """The guardian's next line in words; empty when there is none in time."""
        output = self._guardian.stdout
        assert output is not None
        # Read past the buffer: what it held, select could not see.
        if output.closed or not select.select([output], [], [], max(0.0, seconds))[0]:
            return []
        line = b""
        while not line.endswith(b"\n"):
            byte = os.read(output.fileno(), 1)
            if not byte:
                break
            line += byte
        return line.decode().split()
