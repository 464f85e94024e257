"""The mock as a whole: in a thread, over HTTP, with tensors on the TCP plane."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import requests

from mock_vllm import MockServer, Settings
from tests.support.plane_trainer import PlaneTrainer

pytestmark = pytest.mark.integration


@pytest.fixture
def server() -> Iterator[MockServer]:
    with MockServer(Settings(model="tiny", port=0, transfer_timeout=5.0)) as server:
        yield server


def post(server: MockServer, path: str, body: Any = None, timeout: float = 10.0) -> requests.Response:
    return requests.post(f"{server.url}{path}", json={} if body is None else body, timeout=timeout)


def get(server: MockServer, path: str) -> Any:
    return requests.get(f"{server.url}{path}", timeout=10).json()


def init(server: MockServer, trainer: PlaneTrainer, receivers: int = 1) -> None:
    info = {
        "master_address": "127.0.0.1",
        "master_port": trainer.port,
        "rank_offset": 1,
        "world_size": receivers + 1,
    }
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(post, server, "/init_weight_transfer_engine", {"init_info": info})
        trainer.accept(receivers)
        assert answer.result(10).json() == {"message": "Weight transfer initialized"}


def update(names: list[str], sizes: list[int], **more: Any) -> dict[str, Any]:
    dtypes = ["uint8"] * len(names)
    return {"update_info": {"names": names, "dtype_names": dtypes, "shapes": [[size] for size in sizes], **more}}


def test_it_is_up_and_down_at_once() -> None:
    began = time.monotonic()
    server = MockServer(Settings(model="tiny", port=0)).start()
    up = time.monotonic() - began
    assert requests.get(f"{server.url}/health", timeout=5).content == b""
    server.stop()
    assert up < 2
    with pytest.raises(requests.ConnectionError):
        requests.get(f"{server.url}/health", timeout=5)


def test_every_answer_says_that_it_is_a_mock(server: MockServer) -> None:
    answers = [
        requests.get(f"{server.url}/health", timeout=5),
        requests.get(f"{server.url}/no/such/route", timeout=5),
        requests.get(f"{server.url}/update_weights", timeout=5),
        post(server, "/start_weight_update", [1]),
        post(server, "/pause?mode=bogus"),
    ]
    assert [answer.status_code for answer in answers] == [200, 404, 405, 500, 400]
    assert all("x-mock-vllm" in answer.headers for answer in answers)
    assert [answer.headers.get("vary") for answer in answers] == ["Origin", "Origin", "Origin", None, "Origin"]


def test_a_sync_leaves_the_tensors_in_the_mock(server: MockServer) -> None:
    with PlaneTrainer() as trainer:
        init(server, trainer)
        assert post(server, "/start_weight_update").status_code == 200
        trainer.send(b"abc")
        trainer.send(b"defg")
        assert post(server, "/update_weights", update(["a", "b"], [3, 4])).json() == {"message": "Weights updated"}
        assert get(server, "/mock/weights")["ranks"][0]["weights"]["a"]["live"] is False
        assert post(server, "/finish_weight_update").status_code == 200
    (rank,) = get(server, "/mock/weights")["ranks"]
    assert rank["weights"]["b"] == {
        "dtype": "uint8",
        "shape": [4],
        "nbytes": 4,
        "sha256": hashlib.sha256(b"defg").hexdigest(),
        "received_sha256": hashlib.sha256(b"defg").hexdigest(),
        "origin": "transfer",
        "update": 1,
        "loaded": True,
        "live": True,
    }


def test_a_packed_buffer_is_cut_into_its_tensors(server: MockServer) -> None:
    with PlaneTrainer() as trainer:
        init(server, trainer)
        post(server, "/start_weight_update")
        trainer.send(b"aaabbbb")
        trainer.send(b"c")
        body = update(["a", "b", "c"], [3, 4, 1], packed=True, packed_buffer_size_bytes=4)
        assert post(server, "/update_weights", body).status_code == 200
    weights = get(server, "/mock/weights?rank=0")["ranks"][0]["weights"]
    assert [weights[name]["sha256"] for name in "abc"] == [
        hashlib.sha256(data).hexdigest() for data in (b"aaa", b"bbbb", b"c")
    ]


def test_every_rank_joins_and_receives() -> None:
    settings = Settings(
        model="tiny", port=0, transfer_timeout=5.0, tensor_parallel_size=2, data_parallel_size=2, keep="bytes"
    )
    with MockServer(settings) as server, PlaneTrainer() as trainer:
        assert get(server, "/get_world_size") == {"world_size": 4}
        assert get(server, "/get_world_size?include_dp=false") == {"world_size": 2}
        init(server, trainer, receivers=4)
        assert sorted(rank for _, rank, _ in trainer.joins) == [1, 2, 3, 4]
        post(server, "/start_weight_update")
        trainer.send(b"xyz")
        assert post(server, "/update_weights", update(["a"], [3])).status_code == 200
        ranks = get(server, "/mock/weights")["ranks"]
        assert [rank["weights"]["a"]["nbytes"] for rank in ranks] == [3, 3, 3, 3]
        for rank in range(4):
            bytes_url = f"{server.url}/mock/weights/bytes"
            query: dict[str, Any] = {"name": "a", "rank": rank}
            assert requests.get(bytes_url, params=query, timeout=5).content == b"xyz"


@pytest.mark.parametrize("announced", [2, 4])
def test_other_byte_counts_hang_to_the_deadline_with_the_diagnosis_at_once(announced: int) -> None:
    with MockServer(Settings(model="tiny", port=0, transfer_timeout=0.8)) as server, PlaneTrainer() as trainer:
        init(server, trainer)
        post(server, "/start_weight_update")
        trainer.send(b"x" * announced)
        with ThreadPoolExecutor(1) as pool:
            answer = pool.submit(post, server, "/update_weights", update(["a"], [3]))
            text = f"broadcast 0: expected 3 bytes, the sender announced {announced}"
            wait_for_event(server, "mismatch", text)
            assert not answer.done()
            assert requests.get(f"{server.url}/health", timeout=5).status_code == 200
            refused = answer.result(10)
        assert refused.status_code == 500
        assert text in refused.json()["error"]["message"]
        assert get(server, "/mock/state")["session"] == {
            "active": True,
            "checkpoint_format": True,
            "updates": 0,
            "failed": True,
        }


def test_other_byte_counts_may_fail_at_once() -> None:
    settings = Settings(model="tiny", port=0, transfer_timeout=60, on_mismatch="fail")
    with MockServer(settings) as server, PlaneTrainer() as trainer:
        init(server, trainer)
        post(server, "/start_weight_update")
        trainer.send(b"xx")
        assert post(server, "/update_weights", update(["a"], [3]), timeout=5).status_code == 500


def test_a_reset_frees_a_blocked_engine(server: MockServer) -> None:
    with PlaneTrainer() as trainer, ThreadPoolExecutor(2) as pool:
        init(server, trainer)
        post(server, "/pause")
        post(server, "/start_weight_update")
        blocked = pool.submit(post, server, "/update_weights", update(["a"], [3]))
        wait_until(lambda: get(server, "/mock/state")["engine"]["busy"] == "update_weights")
        behind = pool.submit(post, server, "/resume")
        wait_until(lambda: get(server, "/mock/state")["engine"]["queued"] == 1)
        assert post(server, "/mock/reset").json() == {"reset": True}
        assert blocked.result(5).status_code == 500
        assert behind.result(5).json()["error"].startswith("Failed to resume generation: ")
    state = get(server, "/mock/state")
    assert (state["session"]["active"], state["paused"], state["group"]) == (False, False, None)
    assert post(server, "/start_weight_update").status_code == 200


def test_stopping_does_not_wait_for_a_blocked_call() -> None:
    server = MockServer(Settings(model="tiny", port=0, transfer_timeout=60)).start()
    with PlaneTrainer() as trainer, ThreadPoolExecutor(1) as pool:
        init(server, trainer)
        post(server, "/start_weight_update")
        blocked = pool.submit(post, server, "/update_weights", update(["a"], [3]))
        wait_until(lambda: get(server, "/mock/state")["engine"]["busy"] == "update_weights")
        began = time.monotonic()
        server.stop()
        assert time.monotonic() - began < 5
        assert blocked.exception(5) is not None or blocked.result().status_code == 500


def test_metadata_only_knows_no_digests() -> None:
    with MockServer(Settings(model="tiny", port=0, receiver="none")) as server:
        info = {"master_address": "192.0.2.1", "master_port": 1, "rank_offset": 1, "world_size": 2}
        assert post(server, "/init_weight_transfer_engine", {"init_info": info}).status_code == 200
        post(server, "/start_weight_update")
        assert post(server, "/update_weights", update(["a"], [3])).status_code == 200
        assert get(server, "/mock/weights")["ranks"][0]["weights"]["a"]["sha256"] is None


def test_without_development_mode_the_routes_are_missing() -> None:
    with MockServer(Settings(model="tiny", port=0, dev_mode=False)) as server:
        assert post(server, "/start_weight_update").json() == {"detail": "Not Found"}
        assert get(server, "/version") == {"version": "0.21.0"}


def test_without_a_transfer_config_the_worker_says_so() -> None:
    with MockServer(Settings(model="tiny", port=0, weight_transfer=False)) as server:
        assert "Weight transfer not configured." in post(server, "/start_weight_update").json()["error"]["message"]


def test_one_process_words_its_errors_without_the_worker() -> None:
    with MockServer(Settings(model="tiny", port=0, executor="uni")) as server:
        assert post(server, "/finish_weight_update").json()["error"]["message"] == (
            "Call to collective_rpc method failed: start_weight_update must be called before finish_weight_update."
        )


def test_the_journal_shows_calls_and_the_plane(server: MockServer) -> None:
    with PlaneTrainer() as trainer:
        init(server, trainer)
        post(server, "/start_weight_update")
    entries = get(server, "/mock/journal")["entries"]
    assert [entry.get("path") or entry["event"] for entry in entries] == [
        "/init_weight_transfer_engine",
        "join",
        "joined",
        "/start_weight_update",
    ]
    assert (entries[-1]["request"], entries[-1]["status"]) == ("{}", 200)


def wait_for_event(server: MockServer, event: str, detail: str) -> None:
    def seen() -> bool:
        entries = get(server, "/mock/journal")["entries"]
        return any(entry.get("event") == event and entry["detail"] == detail for entry in entries)

    wait_until(seen)


def wait_until(condition: Any, seconds: float = 5.0) -> None:
    deadline = time.monotonic() + seconds
    pause = threading.Event()
    while not condition():
        assert time.monotonic() < deadline, "it did not come about in time"
        pause.wait(0.01)
