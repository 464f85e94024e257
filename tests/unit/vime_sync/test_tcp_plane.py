"""The TCP plane's bytes, against docs/tcp-plane.md."""

from __future__ import annotations

import pytest

from vime_sync.tcp_plane import Join, decode_frame_header, decode_join, encode_frame_header, encode_reply

pytestmark = pytest.mark.unit


def test_a_join_is_sixteen_bytes() -> None:
    assert decode_join(b"WTPLANE1" + b"\0\0\0\2" + b"\0\0\1\0") == Join(2, 256)
    assert decode_join(b"WTPLANE2" + b"\0\0\0\2" + b"\0\0\1\0") is None


def test_replies() -> None:
    assert encode_reply(None) == b"\0\0\0\0\0"
    assert encode_reply("no\u00e9") == b"\1\0\0\0\4no\xc3\xa9"


def test_frames() -> None:
    header = b"\1" + bytes(7) + b"\3" + bytes(6) + b"\1\0"
    assert encode_frame_header(1, 3, 256) == header
    assert decode_frame_header(header) == (1, 3, 256)


def test_objections_say_both_values() -> None:
    assert Join(1, 2).objection(2, frozenset()) is None
    assert Join(1, 3).objection(2, frozenset()) == "world size 3 differs from the trainer's 2"
    assert Join(2, 2).objection(2, frozenset()) == "rank 2 is outside 1..1"
    assert Join(0, 2).objection(2, frozenset()) == "rank 0 is outside 1..1"
    assert Join(1, 2).objection(2, frozenset({1})) == "rank 1 has joined already"
