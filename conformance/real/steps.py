"""Steps of an installation: each runs once, says how long it took, and leaves a stamp when it is done."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from conformance.real.errors import StepError
from conformance.real.guarded import Guarded
from conformance.real.tail import last_lines

Facts = dict[str, Any]
_GRACE_SECONDS = 5.0
_TICK_SECONDS = 0.5


class Reporter(Protocol):
    """Is told how far an installation is."""

    def step(self, number: int, total: int, title: str) -> None:
        """A step begins."""

    def tick(self, seconds: float) -> None:
        """It is still at it, after so many seconds."""

    def done(self, seconds: float) -> None:
        """The step has ended well."""

    def note(self, text: str) -> None:
        """One line to know."""


class Silent:
    """A `Reporter` that says nothing."""

    def step(self, number: int, total: int, title: str) -> None:
        """Nothing."""

    def tick(self, seconds: float) -> None:
        """Nothing."""

    def done(self, seconds: float) -> None:
        """Nothing."""

    def note(self, text: str) -> None:
        """Nothing."""


@dataclass
class Shell:
    """Runs the commands of an installation, their output appended to ``log``. ``deadline``: seconds of one command."""

    log: Path
    reporter: Reporter
    deadline: float

    def run(self, step: str, command: Sequence[str], output: Path | None = None) -> None:
        """Runs one command to its end, or the end of this process. ``output`` instead of the log, overwritten.

        Raises StepError when it fails or takes longer than the deadline.
        """
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as log:
            log.write(f"\n$ {' '.join(command)}\n".encode())
        target = output or self.log
        with target.open("wb" if output else "ab") as file:
            began = time.monotonic()
            guarded = Guarded(command, file, _without_other_pythons(os.environ), _GRACE_SECONDS)
            try:
                guarded.pid(30.0)
                while (status := guarded.ended(_TICK_SECONDS)) is None:
                    seconds = time.monotonic() - began
                    if seconds > self.deadline:
                        raise StepError(step, f"not done within {self.deadline:g} s", target, last_lines(target))
                    self.reporter.tick(seconds)
            finally:
                guarded.stop()
        if status != 0:
            raise StepError(step, f"exit status {status}", target, last_lines(target, 12))


def _without_other_pythons(environ: Mapping[str, str]) -> dict[str, str]:
    dropped = (
        "PYTHONPATH",
        "PYTHONHOME",
        "VIRTUAL_ENV",
        "PIP_TARGET",
        "PIP_PREFIX",
        "PIP_USER",
        "PIP_REQUIRE_VIRTUALENV",
    )
    return {name: value for name, value in environ.items() if name not in dropped}


class Steps:
    """The stamps in ``folder``. A step whose key has changed is done again, and so is every step after it.

    ``on_change`` is called once, with the name of the first step that is to be done.
    """

    def __init__(self, folder: Path, total: int, reporter: Reporter, on_change: Callable[[str], None]) -> None:
        self._folder, self._total, self._reporter, self._on_change = folder, total, reporter, on_change
        self._number = 0
        self.stale = False

    def key(self, name: str) -> Facts | None:
        """The key of a finished step; None when it is not finished."""
        stamp = self._read(name)
        return None if stamp is None else stamp["key"]

    def facts(self, name: str) -> Facts | None:
        """What a finished step found out, whatever its key; None when it is not finished."""
        stamp = self._read(name)
        return None if stamp is None else stamp["facts"]

    def do(self, name: str, title: str, key: Facts, action: Callable[[], Facts]) -> Facts:
        """What ``action`` found out, now or when it was done before with the same ``key``."""
        self._number += 1
        stamp = self._read(name)
        if not self.stale and stamp is not None and stamp["key"] == key:
            facts: Facts = stamp["facts"]
            return facts
        if not self.stale:
            self._on_change(name)
        self.stale = True
        self._path(name).unlink(missing_ok=True)
        self._reporter.step(self._number, self._total, title)
        began = time.monotonic()
        facts = action()
        self._folder.mkdir(parents=True, exist_ok=True)
        part = self._path(name).with_suffix(".part")
        part.write_text(json.dumps({"key": key, "facts": facts}, indent=1))
        part.replace(self._path(name))
        self._reporter.done(time.monotonic() - began)
        return facts

    def _path(self, name: str) -> Path:
        return self._folder / f"{name}.json"

    def _read(self, name: str) -> Facts | None:
        try:
            stamp = json.loads(self._path(name).read_text())
        except (OSError, ValueError):
            return None
        return stamp if isinstance(stamp, dict) and {"key", "facts"} <= stamp.keys() else None
