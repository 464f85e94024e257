"""The typed calls, over the seam."""

from __future__ import annotations

import pytest

from tests.support.scripted_engine import ScriptedEngine, as_json, refusal
from vime_sync.engine import EngineClient
from vime_sync.errors import EngineError, MalformedAnswer, UnsupportedRelease
from vime_sync.timeouts import Timeouts
from vime_sync.transport import Response

pytestmark = pytest.mark.unit


def client(engine: ScriptedEngine) -> EngineClient:
    return EngineClient("http://unused", Timeouts.resolve(5), engine)


def test_every_post_has_a_json_body() -> None:
    engine = ScriptedEngine()
    one = client(engine)
    one.pause("abort", clear_cache=False)
    one.resume()
    one.reset_prefix_cache()
    one.start_weight_update()
    one.finish_weight_update()
    posts = [(route, body, query) for route, body, query in engine.calls if body is not None]
    assert posts == [
        ("/pause", {}, {"mode": "abort", "clear_cache": "false"}),
        ("/resume", {}, {}),
        ("/reset_prefix_cache", {}, {}),
        ("/start_weight_update", {}, {}),
        ("/finish_weight_update", {}, {}),
    ]


def test_infos_travel_under_their_names() -> None:
    engine = ScriptedEngine()
    engine.handlers["/init_weight_transfer_engine"] = lambda _engine, _body: as_json(
        {"message": "Weight transfer initialized"}
    )
    engine.handlers["/update_weights"] = lambda _engine, _body: as_json({"message": "Weights updated"})
    one = client(engine)
    one.version()
    one.init_weight_transfer_engine({"world_size": 2})
    one.start_weight_update(is_checkpoint_format=False)
    one.update_weights({"names": []})
    assert [body for _, body, _ in engine.calls[1:]] == [
        {"init_info": {"world_size": 2}},
        {"is_checkpoint_format": False},
        {"update_info": {"names": []}},
    ]


@pytest.mark.parametrize("version", ["0.25.0", "0.32.0"])
def test_kernel_format_is_refused_where_it_would_be_ignored(version: str) -> None:
    engine = ScriptedEngine(version=version)
    one = client(engine)
    with pytest.raises(UnsupportedRelease, match="ignores is_checkpoint_format=False"):
        one.start_weight_update(is_checkpoint_format=False)
    assert "/start_weight_update" not in engine.routes
    one.start_weight_update(is_checkpoint_format=True)


def test_a_weight_version_travels_with_the_finish_and_is_read_back() -> None:
    engine = ScriptedEngine(version="0.27.0")
    one = client(engine)
    assert one.weight_version() == "default"
    one.start_weight_update()
    one.finish_weight_update(weight_version="step-7")
    assert engine.calls[-1][1] == {"weight_version": "step-7"}
    assert one.weight_version() == "step-7"


def test_a_release_without_weight_versions_is_not_told_any() -> None:
    engine = ScriptedEngine(version="0.26.0")
    with pytest.raises(UnsupportedRelease, match="keeps no weight version"):
        client(engine).finish_weight_update(weight_version="step-7")
    assert engine.routes == ["/version"]


def test_reads() -> None:
    engine = ScriptedEngine(world_size=3)
    one = client(engine)
    assert one.health() is True
    assert one.world_size() == 3
    assert one.models() == ["tiny"]
    assert one.is_paused() is False
    assert one.version() == "0.21.0"
    assert (one.stated_version, one.mock_version) == ("0.21.0", "test")


def test_the_version_is_asked_once() -> None:
    engine = ScriptedEngine()
    one = client(engine)
    one.version()
    assert one.release.version == "0.21.0"
    assert one.release.version == "0.21.0"
    assert engine.routes == ["/version"]


def test_a_dead_engine_is_not_healthy_and_a_broken_one_is_an_error() -> None:
    engine = ScriptedEngine()
    engine.handlers["/health"] = lambda _engine, _body: Response(503)
    assert client(engine).health() is False
    engine.handlers["/health"] = lambda _engine, _body: Response(502, b"<html>")
    with pytest.raises(EngineError):
        client(engine).health()


@pytest.mark.parametrize(
    ("version", "answer", "result"),
    [("0.21.0", Response(200), None), ("0.26.0", as_json({"success": False}), False)],
)
def test_the_flush_is_read_as_the_release_answers_it(version: str, answer: Response, result: bool | None) -> None:
    engine = ScriptedEngine(version=version)
    engine.handlers["/reset_prefix_cache"] = lambda _engine, _body: answer
    assert client(engine).reset_prefix_cache() is result
    other = ScriptedEngine(version="0.26.0" if version == "0.21.0" else "0.21.0")
    other.handlers["/reset_prefix_cache"] = lambda _engine, _body: answer
    with pytest.raises(MalformedAnswer):
        client(other).reset_prefix_cache()


def test_a_server_without_the_mock_s_header_shows_no_weights_whatever_it_answers() -> None:
    engine = ScriptedEngine(mock=False)
    assert client(engine).mock_weights() is None
    engine.handlers["/mock/weights"] = lambda _engine, _body: as_json({"schema": "mock-vllm/weights/1", "ranks": []})
    assert client(engine).mock_weights() is None


def test_a_mock_of_another_schema_is_an_error() -> None:
    engine = ScriptedEngine()
    engine.handlers["/mock/weights"] = lambda _engine, _body: as_json(
        {"schema": "mock-vllm/weights/2"}, **{"x-mock-vllm": "9"}
    )
    with pytest.raises(MalformedAnswer, match="schema"):
        client(engine).mock_weights()


def test_refusals_and_unknown_releases_come_through() -> None:
    engine = ScriptedEngine(version="0.20.0")
    engine.handlers["/pause"] = lambda _engine, _body: refusal("no")
    with pytest.raises(EngineError):
        client(engine).pause()
    with pytest.raises(UnsupportedRelease):
        _ = client(engine).release
