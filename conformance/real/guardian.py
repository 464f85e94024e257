"""Runs one command and ends every process that comes of it when the command ends, or when the caller does.

    python guardian.py GRACE COMMAND [ARGUMENT...]

Standard input is a pipe that the caller holds: its end, for whatever reason, a kill of the caller included, means stop.
Standard output tells the caller: ``pid N`` at the start, ``ended STATUS`` when the command has ended, negative for a
signal. The command's own input is empty, its output is this process's standard error. GRACE: seconds between SIGTERM
and SIGKILL.

A script of its own, of the standard library alone: it outlives the process that started it.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


def _prctl(option: int, value: int) -> None:
    # Linux alone has it. Elsewhere the process group is all there is.
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _die_with_the_guardian() -> None:
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _descendants() -> list[int]:
    """All processes below this one. With orphans handed to this process (subreaper), none can slip away."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError, ValueError, IndexError):
                # The name, in parentheses, may hold anything; what follows the last one is fields.
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                if fields[0] != "Z":
                    parents[int(entry.name)] = int(fields[1])
    found = [os.getpid()]
    for pid in found:
        found += [child for child, parent in parents.items() if parent == pid and child not in found]
    return found[1:]


def _signal_all(number: int) -> list[int]:
    pids = _descendants()
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
    return pids


def _reap(command: subprocess.Popen[bytes]) -> None:
    """Takes the status of every ended child; the command's own through its object, which keeps it."""
    with contextlib.suppress(ChildProcessError):
        while ended := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            if ended.si_pid == command.pid:
                command.poll()
            else:
                os.waitpid(ended.si_pid, 0)


def _end_all(command: subprocess.Popen[bytes], grace: float) -> None:
    """SIGTERM to the command, which ends its own children in its own order; then to all that is left, then SIGKILL."""
    if command.poll() is None:
        command.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            command.wait(grace)
    _signal_all(signal.SIGTERM)
    end = time.monotonic() + min(grace, 1.0)
    while _descendants() and time.monotonic() < end:
        _reap(command)
        time.sleep(0.02)
    while _signal_all(signal.SIGKILL):
        _reap(command)
        time.sleep(0.02)


def _tell(line: str) -> None:
    # The caller may have gone: nobody is left to be told.
    with contextlib.suppress(OSError):
        os.write(1, f"{line}\n".encode())


def main(arguments: list[str]) -> int:
    """Runs the command. Returns its exit status, 128 and the number for a signal, as a shell does."""
    grace = float(arguments[0])
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    wake_read, wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    stop = False

    def on_stop(_number: int, _frame: object) -> None:
        nonlocal stop
        stop = True

    signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, on_stop)
    signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
    command = subprocess.Popen(arguments[1:], stdin=subprocess.DEVNULL, stdout=2, preexec_fn=_die_with_the_guardian)
    _tell(f"pid {command.pid}")
    while command.poll() is None and not stop:
        ready, _, _ = select.select([0, wake_read], [], [], 5.0)
        if wake_read in ready:
            with contextlib.suppress(BlockingIOError):
                os.read(wake_read, 4096)
            _reap(command)
        if 0 in ready and not os.read(0, 4096):
            stop = True
    if command.poll() is not None:
        _tell(f"ended {command.returncode}")
    _end_all(command, grace)
    status = command.wait()
    if stop:
        _tell(f"ended {status}")
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
