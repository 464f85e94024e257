"""The environment variables that steer the plane, read when a group is made.

`WEIGHT_PLANE_TIMEOUT`   seconds that a meeting or one broadcast may take; default 300, as vLLM's store waits.
`WEIGHT_PLANE_MISMATCH`  `wait` (default): a wrong byte count hangs to the deadline, as NCCL would; `fail`: raises.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass

from .errors import SettingError

TIMEOUT = "WEIGHT_PLANE_TIMEOUT"
MISMATCH = "WEIGHT_PLANE_MISMATCH"


@dataclass(frozen=True)
class Settings:
    """`timeout` in seconds; `wait_on_mismatch` as NCCL would."""

    timeout: float = 300.0
    wait_on_mismatch: bool = True


def read_settings(environ: Mapping[str, str] = os.environ) -> Settings:
    """What the environment says. Raises `SettingError` for a value that cannot be used."""
    text = environ.get(TIMEOUT, "300")
    try:
        timeout = float(text)
    except ValueError:
        timeout = math.nan
    if not (math.isfinite(timeout) and timeout > 0):
        raise SettingError(TIMEOUT, text, "a number of seconds above 0")
    mode = environ.get(MISMATCH, "wait")
    if mode not in ("wait", "fail"):
        raise SettingError(MISMATCH, mode, "'wait' or 'fail'")
    return Settings(timeout=timeout, wait_on_mismatch=mode == "wait")
