"""What is known of the releases."""

from __future__ import annotations

import pytest

from vime_sync.dtypes import from_torch_name
from vime_sync.errors import SettingError, UnsupportedRelease
from vime_sync.releases import EPOCHS, assumed_release, check_assumed, release_of

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("version", "packed_in_update", "closes", "resets_json", "zero_dim"),
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
def test_what_changes_when(
    version: str, packed_in_update: bool, closes: bool, resets_json: bool, zero_dim: bool
) -> None:
    release = release_of(version)
    assert release.packed_in_update is packed_in_update
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


@pytest.mark.parametrize(
    ("epoch", "versions"),
    [
        ("A", ["0.21.0", "0.22.0", "0.22.1"]),
        ("B", ["0.23.0", "0.24.0"]),
        ("C", ["0.25.0", "0.25.1"]),
        ("D", ["0.26.0"]),
        ("E", ["0.27.0", "0.27.1"]),
        ("F", ["0.28.0"]),
        ("G", ["0.29.0"]),
        ("H", ["0.30.0", "0.31.0"]),
        ("I", ["0.32.0"]),
        ("J", ["0.33.0"]),
    ],
)
def test_the_published_releases_by_epoch(epoch: str, versions: list[str]) -> None:
    for version in versions:
        release = release_of(version)
        assert (release.version, release.epoch) == (version, epoch)
        number = int(version.split(".")[1])
        assert release.start_reads_format is (number < 25)
        assert release.has_weight_version is (number >= 27)
        assert release.empty_update_replays is (number >= 33)


def test_the_table_is_in_order_and_begins_with_each_epoch_s_first_release() -> None:
    assert [release.epoch for release in EPOCHS] == list("ABCDEFGHIJ")
    assert [release.since for release in EPOCHS] == sorted(release.since for release in EPOCHS)
    for release in EPOCHS:
        assert release.version == f"0.{release.since[1]}.0"


def test_a_release_that_nobody_pushed_into_says_so() -> None:
    assert release_of("0.32.9").warning is None
    assert "not verified" in (release_of("0.33.0").warning or "")


@pytest.mark.parametrize("version", ["0.34.0", "0.99.0", "1.0.0"])
def test_newer_releases_carry_a_warning(version: str) -> None:
    warning = release_of(version).warning
    assert warning is not None
    assert version in warning


def test_packing_is_announced_by_init_from_0_28_on() -> None:
    for version, expected in (("0.27.1", {}), ("0.28.0", {"packed": True, "packed_buffer_size_bytes": 77})):
        assert release_of(version).init_packing(packed=True, packed_buffer_bytes=77) == expected
        assert release_of(version).init_packing(packed=False, packed_buffer_bytes=77) == {}


def test_a_weight_version_needs_0_27_and_a_name() -> None:
    release_of("0.27.0").check_weight_version("7")
    with pytest.raises(UnsupportedRelease, match=r"0\.27\.0 is the first"):
        release_of("0.26.0").check_weight_version("7")
    with pytest.raises(SettingError, match="empty"):
        release_of("0.27.0").check_weight_version("")


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


@pytest.mark.parametrize("version", ["old", "", "0", "main", 21, 0.21])
def test_an_assumed_release_that_cannot_be_read_is_a_setting(version: object) -> None:
    with pytest.raises(SettingError, match="vLLM version"):
        assumed_release(version)


def test_an_assumed_release_is_a_release_all_the_same() -> None:
    assert assumed_release("0.28.0").epoch == "F"
    with pytest.raises(UnsupportedRelease, match="older"):
        assumed_release("0.20.0")


@pytest.mark.parametrize(
    ("assumed", "stated"),
    [("0.28.0", "0.21.0"), ("0.21.0", "0.22.1rc2"), ("0.21.0", "0.20.0"), ("0.33.0", "0.99.0"), ("0.21.0", "1.21.0")],
)
def test_a_stated_release_is_not_taken_for_another(assumed: str, stated: str) -> None:
    with pytest.raises(UnsupportedRelease) as caught:
        check_assumed(assumed_release(assumed), stated)
    assert assumed in str(caught.value)
    assert stated in str(caught.value)


@pytest.mark.parametrize("stated", ["0.21.0", "0.21.3", "0.21.0+cpu", "0.1.dev7+gabc", "0.28.1.dev4+g12", "main", "x"])
def test_what_states_no_other_release_may_be_taken_for_one(stated: str) -> None:
    check_assumed(assumed_release("0.21.0"), stated)
