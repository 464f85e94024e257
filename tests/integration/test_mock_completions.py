"""Completions: which weights serve, a pause that holds them back, and the end of an engine without weights."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest
import requests

from mock_vllm import MockServer, Settings
from tests.support.plane_trainer import PlaneTrainer

pytestmark = pytest.mark.integration

RELEASES = ["0.21.0", "0.32.0"]


@pytest.fixture(params=RELEASES)
def server(request: pytest.FixtureRequest) -> Iterator[MockServer]:
    settings = Settings(model="tiny", port=0, transfer_timeout=5.0, vllm_version=request.param)
    with MockServer(settings) as server:
        yield server


def post(server: MockServer, path: str, body: Any = None) -> requests.Response:
    return requests.post(f"{server.url}{path}", json={} if body is None else body, timeout=10)


def complete(server: MockServer, **more: Any) -> requests.Response:
    return post(server, "/v1/completions", {"prompt": [1, 2, 3], "max_tokens": 4, "return_token_ids": True, **more})


def tokens(answer: requests.Response) -> list[int]:
    found: list[int] = answer.json()["choices"][0]["token_ids"]
    return found


def sync(server: MockServer, data: bytes) -> None:
    with PlaneTrainer() as trainer, ThreadPoolExecutor(1) as pool:
        info = {"master_address": "127.0.0.1", "master_port": trainer.port, "rank_offset": 1, "world_size": 2}
        answer = pool.submit(post, server, "/init_weight_transfer_engine", {"init_info": info})
        trainer.accept()
        assert answer.result(10).status_code == 200
        assert post(server, "/start_weight_update").status_code == 200
        trainer.send(data)
        body = {"update_info": {"names": ["a"], "dtype_names": ["uint8"], "shapes": [[len(data)]]}}
        assert post(server, "/update_weights", body).status_code == 200
        assert post(server, "/finish_weight_update").status_code == 200


def test_tokens_follow_the_weights(server: MockServer) -> None:
    written = []
    for data in (b"A", b"B", b"A"):
        sync(server, data)
        written.append(tokens(complete(server)))
    assert written[0] == written[2] != written[1]
    assert len(written[0]) == 4


def test_a_pause_holds_a_completion_back(server: MockServer) -> None:
    post(server, "/pause?mode=keep")
    with ThreadPoolExecutor(1) as pool:
        waiting: Future[requests.Response] = pool.submit(complete, server)
        time.sleep(0.1)
        assert not waiting.done()
        post(server, "/resume")
        assert waiting.result(5).json()["choices"][0]["finish_reason"] == "length"


def test_a_pause_that_aborts_ends_what_waits(server: MockServer) -> None:
    post(server, "/pause?mode=keep")
    with ThreadPoolExecutor(1) as pool:
        waiting: Future[requests.Response] = pool.submit(complete, server)
        time.sleep(0.1)
        post(server, "/pause?mode=abort")
        answer = waiting.result(5).json()
    assert answer["choices"][0]["finish_reason"] == "abort"
    assert answer["usage"]["completion_tokens"] == 0


def test_a_completion_in_an_open_session_ends_the_server(server: MockServer) -> None:
    post(server, "/start_weight_update")
    answer = complete(server)
    assert (answer.status_code, answer.json()["error"]["message"]) == (
        500,
        "EngineCore encountered an issue. See stack trace (above) for the root cause.",
    )
    assert requests.get(f"{server.url}/health", timeout=5).status_code == 503
    paused = requests.get(f"{server.url}/is_paused", timeout=5)
    assert paused.json()["error"].startswith("Failed to fetch pause status: EngineCore encountered")
    deadline = time.monotonic() + 3
    while not server.ended:
        assert time.monotonic() < deadline, "the server goes on"
        time.sleep(0.02)
    with pytest.raises(requests.ConnectionError):
        requests.get(f"{server.url}/health", timeout=5)


def test_a_dead_engine_may_be_kept_for_a_look() -> None:
    with MockServer(Settings(model="tiny", port=0, stay_when_dead=True)) as server:
        post(server, "/start_weight_update")
        assert complete(server).status_code == 500
        time.sleep(0.7)
        assert requests.get(f"{server.url}/health", timeout=5).status_code == 503
        assert requests.get(f"{server.url}/mock/state", timeout=5).json()["session"]["active"] is True
        assert post(server, "/mock/reset").json() == {"reset": True}
        assert complete(server).status_code == 200


@pytest.mark.parametrize(
    ("more", "status", "message"),
    [
        ({"model": "other"}, 404, "The model `other` does not exist."),
        ({"prompt": []}, 400, "You must pass at least one prompt"),
        ({"prompt": [99_999_999]}, 400, "Token id 99999999 is out of vocabulary"),
        ({"stream": True}, 400, "the mock does not stream completions"),
    ],
)
def test_a_request_that_cannot_be(server: MockServer, more: dict[str, Any], status: int, message: str) -> None:
    answer = complete(server, **more)
    assert (answer.status_code, answer.json()["error"]["message"]) == (status, message)
