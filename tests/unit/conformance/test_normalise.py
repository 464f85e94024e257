"""The volatile parts of answers, and that nothing else is touched."""

from __future__ import annotations

import pytest

from conformance.normalise import SPANS, normalise, normalise_text, without_endpoint, without_plane_message

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ('  File "/venv/lib/vllm/api_router.py", line 30, in pause', '  File "<path>", line 30, in pause'),
        ("<object at 0x7f2b9c1d>", "<object at <memory address>>"),
        ("no trainer at 127.0.0.1:43211", "no trainer at <host>:<port>"),
        ("no trainer at [::1]:43211", "no trainer at <host>:<port>"),
        ("are: {'lm_head.weight', 'a', 'b.c'}", "are: {'a', 'b.c', 'lm_head.weight'}"),
        ("loc: {'type': 'x', 'loc': ('a', 'b')}", "loc: {'type': 'x', 'loc': ('a', 'b')}"),
        ("line 30 of 127 bytes", "line 30 of 127 bytes"),
        ("torch.Size([32]) into 0x", "torch.Size([32]) into 0x"),
    ],
)
def test_texts(text: str, named: str) -> None:
    assert normalise_text(text) == named
    assert normalise_text(named) == named


def test_a_completion_keeps_its_form_and_loses_what_the_model_wrote() -> None:
    body = {
        "id": "cmpl-a6a5fb6d8c0e4e6f",
        "model": "/models/tiny",
        "created": 1795958243,
        "system_fingerprint": "vllm-0.21.0-1b577b25",
        "choices": [{"index": 0, "text": "some words", "finish_reason": "abort"}],
    }
    assert normalise(body) == {
        "id": "<id>",
        "model": "<model>",
        "created": "<time>",
        "system_fingerprint": "vllm-0.21.0-<fingerprint>",
        "choices": [{"index": 0, "text": "<text>", "finish_reason": "abort"}],
    }
    assert normalise({"text": "some words"}) == {"text": "some words"}


def test_digests_of_weights_are_the_machines() -> None:
    assert normalise({"checksums": {"a": "0f" * 32, "b": "0f" * 31}}) == {
        "checksums": {"a": "<digest>", "b": "0f" * 31}
    }


@pytest.mark.parametrize(
    ("text", "host", "named"),
    [
        ("http://10.0.0.7:8000/x", "10.0.0.7", "http://<host>:<port>/x"),
        ("http://[fd00::7]:8000/x", "fd00::7", "http://<host>:<port>/x"),
        ("http://box.lan:8000/x", "box.lan", "http://<host>:<port>/x"),
        ("http://10.0.0.7:80001/x", "10.0.0.7", "http://10.0.0.7:80001/x"),
        ("http://110.0.0.7:8000/x", "10.0.0.7", "http://110.0.0.7:8000/x"),
        ("http://a.box.lan:8000/x", "box.lan", "http://a.box.lan:8000/x"),
    ],
)
def test_the_endpoint_that_was_asked(text: str, host: str, named: str) -> None:
    assert without_endpoint(text, host, 8000) == named


def test_the_list_of_models() -> None:
    body = {
        "data": [
            {
                "id": "tiny",
                "root": "/models/tiny",
                "object": "model",
                "created": 1795958243,
                "max_model_len": 256,
                "permission": [{"id": "modelperm-805aa521a678cd45", "created": 1795958243, "is_blocking": False}],
            }
        ]
    }
    assert normalise(body) == {
        "data": [
            {
                "id": "<model>",
                "root": "<model>",
                "object": "model",
                "created": "<time>",
                "max_model_len": "<length>",
                "permission": [{"id": "<id>", "created": "<time>", "is_blocking": False}],
            }
        ]
    }


def test_a_value_of_another_type_stays_and_so_shows() -> None:
    assert normalise({"created": "yesterday", "max_model_len": None, "id": 7, "code": 500}) == {
        "created": "yesterday",
        "max_model_len": None,
        "id": 7,
        "code": 500,
    }
    assert normalise({"created": True}) == {"created": True}


def test_every_span_is_explained() -> None:
    produced = normalise_text('File "/x" 0x7f2b9c1d localhost:1 modelperm-ab12')
    for span in ("<path>", "<memory address>", "<host>:<port>", "<id>"):
        assert span in produced
        assert span in SPANS


def test_only_an_error_message_is_the_data_planes() -> None:
    body = {"error": {"message": "the peer has gone", "type": "InternalServerError", "param": None, "code": 500}}
    assert without_plane_message(body) == {
        "error": {"message": "<data plane's message>", "type": "InternalServerError", "param": None, "code": 500}
    }
    assert without_plane_message({"message": "Weights updated"}) == {"message": "Weights updated"}
    assert without_plane_message({"error": "text"}) == {"error": "text"}
    assert without_plane_message("") == ""
