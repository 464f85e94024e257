"""What may be shown."""

from __future__ import annotations

import pytest

from vime_sync.redaction import shortened, without_credentials

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("http://user:secret@host:1/x", "http://host:1/x"),
        ("see https://u:p%40ss@h and http://v:w@i/", "see https://h and http://i/"),
        ("http://a:b@c@host/", "http://host/"),
        ("http://host/path@place", "http://host/path@place"),
        ("mail me@host", "mail me@host"),
    ],
)
def test_credentials_are_removed_from_every_url(text: str, shown: str) -> None:
    assert without_credentials(text) == shown


def test_long_text_is_cut_and_says_so() -> None:
    assert shortened("x" * 600) == "x" * 500 + " …"
    assert shortened("x" * 500) == "x" * 500


def test_a_cut_does_not_bring_credentials_back() -> None:
    text = "y" * 480 + " http://user:" + "s3cret" * 20 + "@host"
    assert "s3cret" not in shortened(text)


def test_control_characters_and_broken_utf8_are_replaced() -> None:
    assert shortened(b"a\x1b[31mb\nc\xff") == "a\N{REPLACEMENT CHARACTER}[31mb c\N{REPLACEMENT CHARACTER}"
