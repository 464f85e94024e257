"""Byte counts as people write them."""

from __future__ import annotations

import re

from vime_sync.errors import SettingError

_UNITS = {
    "": 1,
    "b": 1,
    "kb": 10**3,
    "mb": 10**6,
    "gb": 10**9,
    "tb": 10**12,
    "k": 2**10,
    "m": 2**20,
    "g": 2**30,
    "t": 2**40,
    "kib": 2**10,
    "mib": 2**20,
    "gib": 2**30,
    "tib": 2**40,
}
_SIZE = re.compile(r"(\d{1,18}(?:\.\d{1,9})?)\s*([a-z]*)", re.ASCII)


def parse_bytes(text: str) -> int:
    """`64MiB`, `1GB`, `1.5g` or `4096` as bytes. KB, MB, GB are powers of ten; K, M, G and KiB, MiB, GiB of two.

    Raises SettingError for anything else, and for less than one byte.
    """
    matched = _SIZE.fullmatch(text.strip().lower())
    if matched is None or matched[2] not in _UNITS:
        raise SettingError("size", f"{text!r} is not a size", next_step="write it as 4096, 64MiB or 1GB")
    number, unit = matched[1], _UNITS[matched[2]]
    size = float(number) * unit if "." in number else int(number) * unit
    if size < 1 or size != int(size):
        raise SettingError("size", f"{text!r} is not a whole number of bytes above 0")
    return int(size)


def format_bytes(count: float) -> str:
    """A byte count for people, in powers of two: `90.9 MiB`."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"
