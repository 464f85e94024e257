"""What is known of the releases."""

from __future__ import annotations

import pytest

from vime_sync.dtypes import from_torch_name
from vime_sync.errors import UnsupportedRelease
from vime_sync.releases import release_of

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("version", "packs", "closes", "resets_json", "zero_dim"),
    [
        ("0.21.0", True, False, False, False),
        ("0.22.1", True, False, False, False),
        ("0.23.0", True, True, False, False),
        ("0.25.1", True, True, False, False),
        ("0.26.0", True, True, True, False),
        ("0.27.1", True, True, True, False),
        ("0.28.0", False, True, True, False),
        ("0.32.0", False, True, True, True),
    ],
)
def test_epochs(version: str, packs: bool, closes: bool, resets_json: bool, zero_dim: bool) -> None:
    release = release_of(version)
    assert release.packed_in_update is packs
    assert release.failed_update_closes is closes
    assert release.reset_answers_json is resets_json
    assert release.zero_dim_packs is zero_dim
    assert release.warning is None


@pytest.mark.parametrize("version", ["0.21.0+cpu", "0.21.1rc2.dev3+gabc", "v0.21.0", "0.21", "0.21.0.post1"])
def test_decorated_versions_are_read(version: str) -> None:
    assert release_of(version).packed_in_update


@pytest.mark.parametrize("version", ["", "main", "0", "x0.21.0", "0.21.0\n<html>", "0..1"])
def test_unreadable_versions_are_one_clear_error(version: str) -> None:
    with pytest.raises(UnsupportedRelease, match="cannot be read") as caught:
        release_of(version)
    assert "--vllm-version" in (caught.value.next_step or "")


@pytest.mark.parametrize("version", ["0.20.2", "0.8.5", "0.1.dev1+gabc"])
def test_older_releases_are_refused(version: str) -> None:
    with pytest.raises(UnsupportedRelease, match="older than"):
        release_of(version)


@pytest.mark.parametrize("version", ["0.34.0", "0.99.0", "1.0.0"])
def test_newer_releases_carry_a_warning(version: str) -> None:
    warning = release_of(version).warning
    assert warning is not None
    assert version in warning


def test_packed_is_refused_from_0_28_on_with_the_way_out() -> None:
    release_of("0.28.0").check(packed=False)
    release_of("0.27.1").check(packed=True)
    with pytest.raises(UnsupportedRelease) as caught:
        release_of("0.28.0").check(packed=True)
    assert "--no-packed" in (caught.value.next_step or "")


@pytest.mark.parametrize(
    ("dtype", "plain", "packed"),
    [
        ("float32", True, True),
        ("bfloat16", True, True),
        ("float8_e4m3fn", True, True),
        ("float8_e5m2", False, True),
        ("bool", False, True),
        ("int16", False, True),
        ("int64", True, True),
        ("complex64", False, True),
        ("float4_e2m1fn_x2", False, False),
    ],
)
def test_what_can_carry_which_dtype(dtype: str, plain: bool, packed: bool) -> None:
    release = release_of("0.21.0")
    found = from_torch_name(dtype)
    assert found is not None
    assert release.carries_plain(found) is plain
    assert release.carries_packed(found, 1) is packed
    assert release.carries_packed(found, 0) is False
