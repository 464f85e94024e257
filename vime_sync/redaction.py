"""What may be shown of what others sent: bounded, printable, without credentials."""

from __future__ import annotations

import re

SHOWN_CHARACTERS = 500

_USERINFO = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*://)[^\s/?#\"'<>]*@")


def without_credentials(text: str) -> str:
    """`text` with the user and password removed from every URL in it."""
    return _USERINFO.sub(r"\1", text)


def shortened(text: str | bytes, limit: int = SHOWN_CHARACTERS) -> str:
    """`text` on one line, without credentials or control characters, cut to `limit` characters.

    Bytes are read as UTF-8 with replacements. Credentials go before the cut, so that a cut never hides an `@`.
    """
    # A few kilobytes are enough to fill the limit; a body of megabytes must not cost a pass of regular expressions.
    head = text[: limit * 16]
    if isinstance(head, bytes):
        head = head.decode("utf-8", errors="replace")
    line = " ".join(without_credentials(head).split())
    line = "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in line)
    return line if len(line) <= limit and len(head) == len(text) else line[:limit] + " …"
