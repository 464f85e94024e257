"""How long a call may take."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass

from vime_sync.errors import SettingError

UPDATE_TIMEOUT_VARIABLE = "SLIME_VLLM_WEIGHT_TRANSFER_UPDATE_TIMEOUT_SEC"
HTTP_TIMEOUT_VARIABLE = "SLIME_VLLM_WEIGHT_TRANSFER_HTTP_TIMEOUT_SEC"
DEFAULT_TOTAL = 900.0
DEFAULT_CONNECT = 10.0
DEFAULT_QUICK = 30.0
LONGEST = 30 * 24 * 3600.0


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Deadlines of one call, in seconds, all above zero.

    connect  until a connection stands, all addresses of a host name together
    read     between two pieces of an answer; an engine that receives a bucket is silent for as long as that takes
    total    from the first byte of a call to the last of its answer, whatever happens between
    quick    `total` for the routes that never wait for the engine (`/health`, `/version`, `/v1/models`, `/mock/…`)
    grace    how long a failed transfer waits for the engine's own explanation, and a clean-up call for its answer

    Raises SettingError on construction when a value is not a finite number of seconds in (0, 30 days].
    """

    connect: float = DEFAULT_CONNECT
    read: float = DEFAULT_TOTAL
    total: float = DEFAULT_TOTAL
    quick: float = DEFAULT_QUICK
    grace: float = 5.0

    def __post_init__(self) -> None:
        for name in ("connect", "read", "total", "quick", "grace"):
            checked(f"timeout {name}", getattr(self, name))

    @classmethod
    def resolve(
        cls, total: float | None = None, *, connect: float | None = None, environ: Mapping[str, str] | None = None
    ) -> Timeouts:
        """Timeouts from the argument, else the environment, else 900 s. Call it once and hand the result on.

        The order is `total`, then SLIME_VLLM_WEIGHT_TRANSFER_UPDATE_TIMEOUT_SEC, then
        SLIME_VLLM_WEIGHT_TRANSFER_HTTP_TIMEOUT_SEC; an unset or empty variable is passed over, a bad one is an error.
        Raises SettingError.
        """
        seconds = total if total is not None else _from_environment(os.environ if environ is None else environ)
        seconds = checked("timeout", seconds)
        return cls(
            connect=checked("connect timeout", connect) if connect is not None else min(DEFAULT_CONNECT, seconds),
            read=seconds,
            total=seconds,
            quick=min(DEFAULT_QUICK, seconds),
            grace=min(5.0, seconds),
        )


def checked(setting: str, value: object) -> float:
    """`value` as seconds. Raises SettingError unless it is a finite number in (0, 30 days]."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise SettingError(setting, f"{value!r} is not a number of seconds")
    if not (math.isfinite(value) and 0 < value <= LONGEST):
        raise SettingError(setting, f"{value!r} is not above 0 and at most {LONGEST:.0f} seconds")
    return float(value)


def _from_environment(environ: Mapping[str, str]) -> float:
    for variable in (UPDATE_TIMEOUT_VARIABLE, HTTP_TIMEOUT_VARIABLE):
        text = environ.get(variable, "").strip()
        if not text:
            continue
        try:
            seconds = float(text)
        except ValueError:
            raise SettingError(
                variable, f"{text!r} is not a number of seconds", next_step="set it to seconds, or unset it"
            ) from None
        return checked(variable, seconds)
    return DEFAULT_TOTAL
