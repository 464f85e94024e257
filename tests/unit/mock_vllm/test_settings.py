"""What a mock cannot be started with is said by the option's name."""

from __future__ import annotations

from typing import Any

import pytest

from mock_vllm.errors import SettingsError
from mock_vllm.settings import Settings

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("option", "values"),
    [
        ("--vllm-version", {"vllm_version": "0.1.0"}),
        ("--receiver", {"receiver": "smoke-signals"}),
        ("--on-mismatch", {"on_mismatch": "shrug"}),
        ("--keep", {"keep": "nothing"}),
        ("--port", {"port": 70000}),
        ("--transfer-timeout", {"transfer_timeout": 0.0}),
        ("--transfer-timeout", {"transfer_timeout": float("nan")}),
        ("--tensor-parallel-size", {"tensor_parallel_size": 0}),
        ("--distributed-executor-backend", {"executor": "uni", "tensor_parallel_size": 2}),
        ("MODEL", {"model": ""}),
        ("MODEL", {"model": "/no/such/folder"}),
        ("MODEL", {"model": "./tiny"}),
        ("--tensor-parallel-size", {"tensor_parallel_size": 10**8}),
    ],
)
def test_a_value_that_cannot_be(option: str, values: dict[str, Any]) -> None:
    with pytest.raises(SettingsError) as caught:
        Settings(**{"model": "tiny", **values})
    assert caught.value.option == option


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:8000"),
        ("0.0.0.0", "http://127.0.0.1:8000"),
        ("::", "http://[::1]:8000"),
        ("::1", "http://[::1]:8000"),
        ("mock", "http://mock:8000"),
    ],
)
def test_the_url_is_one_that_a_client_can_use(host: str, url: str) -> None:
    assert Settings(model="tiny", host=host).url == url


def test_the_world_is_tensor_by_pipeline_by_data_parallel() -> None:
    settings = Settings(model="tiny", tensor_parallel_size=2, pipeline_parallel_size=3, data_parallel_size=4)
    assert (settings.world_size, settings.world_size_without_dp) == (24, 6)
