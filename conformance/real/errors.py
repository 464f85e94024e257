"""What can go wrong with managed real servers. Each error keeps its facts as fields; the first line says it all."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


class RealServerError(RuntimeError):
    """Base of every error of this package."""


class BadVersionError(RealServerError):
    """The text is no release such as ``0.21.0``."""

    def __init__(self, text: str) -> None:
        self.text = text
        super().__init__(f"{text!r} is no vLLM release: three numbers are wanted, such as 0.21.0")


class NotInstalledError(RealServerError):
    """The release has no finished environment."""

    def __init__(self, version: str, home: Path) -> None:
        self.version, self.home = version, home
        super().__init__(
            f"vLLM {version} is not installed in {home}; run: python -m conformance.real install {version}"
        )


class SpaceError(RealServerError):
    """Not enough room on the disk. Sizes in bytes."""

    def __init__(self, folder: Path, needed: int, free: int) -> None:
        self.folder, self.needed, self.free = folder, needed, free
        super().__init__(
            f"{folder} has {free / 1e9:.1f} GB free, {needed / 1e9:.1f} GB are needed; "
            "free some, or set CONFORMANCE_REAL_HOME to a folder on another disk"
        )


class WheelError(RealServerError):
    """The wheel is not what was asked for, or cannot be read."""

    def __init__(self, wheel: Path, reason: str) -> None:
        self.wheel, self.reason = wheel, reason
        super().__init__(f"{wheel}: {reason}")


class BusyError(RealServerError):
    """Another process is installing or removing the same release."""

    def __init__(self, version: str, holder: str, seconds: float) -> None:
        self.version, self.holder, self.seconds = version, holder, seconds
        super().__init__(
            f"vLLM {version} is being installed or removed by process {holder or '?'}, for more than {seconds:g} s; "
            "try again when it has ended"
        )


class StepError(RealServerError):
    """A step of the installation failed. ``tail`` holds the last lines of its log."""

    def __init__(self, step: str, reason: str, log: Path, tail: Sequence[str]) -> None:
        self.step, self.reason, self.log, self.tail = step, reason, log, tuple(tail)
        lines = "".join(f"\n    {line}" for line in self.tail)
        super().__init__(f"the step {step!r} failed: {reason}; its log is {log}, which ends with:{lines}")


class ServerError(RealServerError):
    """Base of what goes wrong while a server starts. ``tail`` holds the last lines of its log."""

    def __init__(self, reason: str, log: Path, tail: Sequence[str]) -> None:
        self.reason, self.log, self.tail = reason, log, tuple(tail)
        lines = "".join(f"\n    {line}" for line in self.tail)
        super().__init__(f"{reason}; its log is {log}, which ends with:{lines}")


class ServerDiedError(ServerError):
    """The server ended before it was healthy. ``status``: its exit status, negative for a signal."""

    def __init__(self, status: int, seconds: float, log: Path, tail: Sequence[str]) -> None:
        self.status, self.seconds = status, seconds
        how = f"with exit status {status}" if status >= 0 else f"by signal {-status}"
        super().__init__(f"the server ended {how} after {seconds:.0f} s, before it was healthy", log, tail)


class ServerDeadlineError(ServerError):
    """The server lives, but was not healthy in time."""

    def __init__(self, seconds: float, url: str, log: Path, tail: Sequence[str]) -> None:
        self.seconds, self.url = seconds, url
        super().__init__(f"the server was not healthy at {url} within {seconds:g} s, and was stopped", log, tail)
