"""What counts as success, and what every other answer becomes."""

from __future__ import annotations

import json

import pytest
from requests.structures import CaseInsensitiveDict

from vime_sync import answers
from vime_sync.calls import Call
from vime_sync.errors import CallError, EngineError, InvalidInfo, MalformedAnswer, OrderError, Refused
from vime_sync.transport import Response

pytestmark = pytest.mark.unit

START = Call("/start_weight_update", "http://e", "start")
PAUSE = Call("/pause", "http://e", "pause")


def response(body: bytes, status: int = 200, content_type: str | None = "application/json") -> Response:
    headers = {} if content_type is None else {"Content-Type": content_type}
    return Response(status, body, CaseInsensitiveDict(headers))


# Bodies as vLLM 0.21.0 sends them.
@pytest.mark.parametrize(
    ("route", "body"),
    [
        ("/init_weight_transfer_engine", b'{"message":"Weight transfer initialized"}'),
        ("/start_weight_update", b'{"message":"Weight update started"}'),
        ("/update_weights", b'{"message":"Weights updated"}'),
        ("/finish_weight_update", b'{"message":"Weight update finished"}'),
    ],
)
def test_the_four_phases(route: str, body: bytes) -> None:
    answers.expect_message(Call(route, "http://e", "x"), response(body))
    answers.expect_message(Call(route, "http://e", "x"), response(body, content_type="application/json; charset=utf-8"))


def test_pause_and_resume() -> None:
    answers.expect_status(PAUSE, response(b'{"status":"paused"}'))
    with pytest.raises(MalformedAnswer):
        answers.expect_status(PAUSE, response(b'{"status":"resumed"}'))


@pytest.mark.parametrize(
    ("body", "content_type", "status"),
    [
        (b"", "application/json", 200),
        (b"", None, 200),
        (b"[]", "application/json", 200),
        (b'[{"message":"Weight update started"}]', "application/json", 200),
        (b'"Weight update started"', "application/json", 200),
        (b"null", "application/json", 200),
        (b"<html>ok</html>", "text/html", 200),
        (b'{"message":"Weight update started"}', "text/html", 200),
        (b'{"message":"Weight update started"}', None, 200),
        (b'{"message":"Weights updated"}', "application/json", 200),
        (b'{"message":"weight update started"}', "application/json", 200),
        (b'{"message":null}', "application/json", 200),
        (b'{"status":"ok"}', "application/json", 200),
        (b'{"message":"Weight update started"', "application/json", 200),
        (b'{"message":"Weight update started"}\xff', "application/json", 200),
        (b"[" * 100_000, "application/json", 200),
        (b'{"message":"Weight update started"}', "application/json", 201),
        (b"", "application/json", 204),
        (b'{"message":"Weight update started"}', "application/json", 302),
    ],
)
def test_no_other_2xx_or_3xx_is_success(body: bytes, content_type: str | None, status: int) -> None:
    with pytest.raises(MalformedAnswer) as caught:
        answers.expect_message(START, response(body, status, content_type))
    assert caught.value.status == status
    assert len(str(caught.value)) < 1000


def test_empty_means_empty() -> None:
    flush = Call("/reset_prefix_cache", "http://e", "flush")
    answers.expect_empty(flush, response(b"", content_type=None))
    with pytest.raises(MalformedAnswer, match="empty"):
        answers.expect_empty(flush, response(b'{"success":true}'))


WRAPPED = "Call to collective_rpc method failed: Worker failed with error '{}', please check the stack trace above"


@pytest.mark.parametrize(
    ("detail", "status", "kind"),
    [
        (WRAPPED.format("start_weight_update must be called before update_weights."), 500, OrderError),
        (WRAPPED.format("start_weight_update called while a weight update is already active. Call"), 500, OrderError),
        (WRAPPED.format("finish_weight_update called without a matching start_weight_update."), 500, OrderError),
        ("Call to collective_rpc method failed: start_weight_update must be called before", 500, OrderError),
        (WRAPPED.format("Invalid update_info for NCCLWeightTransferEngine: unexpected"), 500, InvalidInfo),
        (WRAPPED.format("`shapes` should be of the same size as `names`: got 0 and 1"), 500, InvalidInfo),
        (WRAPPED.format("module 'torch' has no attribute 'float33'"), 500, InvalidInfo),
        ("'list' object has no attribute 'get'", 500, InvalidInfo),
        ("Invalid JSON format", 400, InvalidInfo),
        (WRAPPED.format(""), 500, EngineError),
        ("EngineCore encountered an issue. See stack trace (above) for the root cause.", 500, EngineError),
    ],
)
def test_a_refusal_is_told_by_its_inner_text(detail: str, status: int, kind: type[Refused]) -> None:
    envelope = {"error": {"message": detail, "type": "InternalServerError", "param": None, "code": status}}
    body = json.dumps(envelope).encode()
    with pytest.raises(Refused) as caught:
        answers.expect_message(START, response(body, status))
    assert type(caught.value) is kind
    assert (caught.value.status, caught.value.detail) == (status, detail)
    assert (caught.value.route, caught.value.phase) == ("/start_weight_update", "start")


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        (b'{"error":"Failed to pause generation: x"}', "Failed to pause generation: x"),
        (b'{"detail":"Not Found"}', "Not Found"),
        (b"<html>502</html>", "<html>502</html>"),
        (b'{"error":{"code":5}}', '{"error":{"code":5}}'),
        (b"[1]", "[1]"),
        (b"", ""),
    ],
)
def test_every_shape_of_error_is_read(body: bytes, detail: str) -> None:
    assert answers.refusal_text(body) == detail


def test_a_404_says_what_it_mostly_means() -> None:
    with pytest.raises(EngineError) as caught:
        answers.expect_message(START, response(b'{"detail":"Not Found"}', 404))
    assert "VLLM_SERVER_DEV_MODE=1" in (caught.value.next_step or "")


def test_bodies_are_cut_and_cleaned() -> None:
    body = b"proxy http://user:s3cret@inner/ failed " + b"x" * 10_000_000
    with pytest.raises(EngineError) as caught:
        answers.expect_message(START, response(body, 502, "text/html"))
    assert "s3cret" not in str(caught.value)
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize("body", [b"{}", b'{"world_size":0}', b'{"world_size":true}', b'{"world_size":"1"}'])
def test_counts(body: bytes) -> None:
    with pytest.raises(CallError):
        answers.expect_count(START, response(body), "world_size")
    assert answers.expect_count(START, response(b'{"world_size":4}'), "world_size") == 4


@pytest.mark.parametrize("body", [b"{}", b'{"is_paused":1}', b'{"is_paused":null}'])
def test_flags(body: bytes) -> None:
    with pytest.raises(CallError):
        answers.expect_flag(START, response(body), "is_paused")


@pytest.mark.parametrize("body", [b"{}", b'{"data":{}}', b'{"data":[1]}', b'{"data":[{"id":1}]}'])
def test_models(body: bytes) -> None:
    with pytest.raises(CallError):
        answers.expect_models(START, response(body))
    assert answers.expect_models(START, response(b'{"data":[{"id":"a"},{"id":"b"}]}')) == ["a", "b"]
