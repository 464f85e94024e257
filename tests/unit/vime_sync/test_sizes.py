"""Byte counts as people write them."""

from __future__ import annotations

import pytest

from vime_sync.errors import SettingError
from vime_sync.sizes import format_bytes, parse_bytes

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("text", "size"),
    [("4096", 4096), ("64MiB", 67108864), ("1GB", 10**9), ("1.5g", 1610612736), (" 2 kib ", 2048), ("1B", 1)],
)
def test_sizes(text: str, size: int) -> None:
    assert parse_bytes(text) == size


@pytest.mark.parametrize("text", ["", "0", "-1", "64Mb/s", "MiB", "1e3", "0.5", "1.0000001k", "٣", "9" * 30])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(SettingError):
        parse_bytes(text)


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (1024, "1.0 KiB"), (90 << 20, "90.0 MiB"), (5 << 50, "5120.0 TiB")],
)
def test_formatting(count: int, text: str) -> None:
    assert format_bytes(count) == text
