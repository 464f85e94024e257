"""Base URLs and master addresses."""

from __future__ import annotations

import socket

import pytest

from vime_sync import addresses
from vime_sync.addresses import bracketed, check_master_address, is_loopback, local_address_towards, parse_engine_url
from vime_sync.errors import SettingError

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("url", "base", "host", "port"),
    [
        ("http://127.0.0.1:8000", "http://127.0.0.1:8000", "127.0.0.1", 8000),
        ("http://engine/", "http://engine", "engine", 80),
        ("https://engine", "https://engine", "engine", 443),
        ("http://[::1]:8000", "http://[::1]:8000", "::1", 8000),
        ("http://h:1/prefix/", "http://h:1/prefix", "h", 1),
        ("HTTP://Host:1", "http://host:1", "host", 1),
    ],
)
def test_base_urls_are_taken_apart(url: str, base: str, host: str, port: int) -> None:
    found = parse_engine_url(url)
    assert (found.base, found.host, found.port, found.credentials) == (base, host, port, None)


def test_credentials_are_kept_apart_and_decoded() -> None:
    found = parse_engine_url("http://us%40er:p%3Aw@host:1")
    assert found.base == "http://host:1"
    assert found.credentials == ("us@er", "p:w")


@pytest.mark.parametrize(
    "url",
    [
        "",
        "host:8000",
        "ftp://host",
        "http://",
        "http://user:s3cret@",
        "http://::1:8000",
        "http://[::1",
        "http://user:s3cret@host:99999",
        "http://user:s3cret@host:port",
        "http://host:0",
        "http://host/?x=1",
        "http://host/#y",
        "http://ho st",
        "http://host\n",
    ],
)
def test_what_is_no_base_url_is_refused_without_showing_credentials(url: str) -> None:
    with pytest.raises(SettingError, match="engine URL") as caught:
        parse_engine_url(url)
    assert "s3cret" not in caught.value.line()
    assert caught.value.next_step is not None


def test_only_ipv6_is_bracketed() -> None:
    assert bracketed("::1") == "[::1]"
    assert bracketed("[::1]") == "[::1]"
    assert bracketed("10.0.0.1") == "10.0.0.1"


def test_the_address_towards_loopback_is_loopback() -> None:
    assert local_address_towards("127.0.0.1", 9) == "127.0.0.1"


def test_ipv4_is_preferred_for_a_name_that_has_both(monkeypatch: pytest.MonkeyPatch) -> None:
    def both(_host: str, port: int, **_: object) -> list[tuple[object, ...]]:
        return [
            (socket.AF_INET6, socket.SOCK_STREAM, 6, "", ("::1", port, 0, 0)),
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port)),
        ]

    monkeypatch.setattr(addresses.socket, "getaddrinfo", both)
    assert local_address_towards("both", 9) == "127.0.0.1"


def test_loopback_is_told_by_address() -> None:
    assert is_loopback("127.0.0.9")
    assert is_loopback("::1")
    assert not is_loopback("192.0.2.1")
    assert not is_loopback("name.invalid")


@pytest.mark.parametrize("master", ["0.0.0.0", "::", ""])
def test_a_wildcard_is_never_a_master_address(master: str) -> None:
    with pytest.raises(SettingError, match="master address"):
        check_master_address(master, "127.0.0.1")


def test_loopback_is_refused_for_an_engine_elsewhere_only() -> None:
    check_master_address("127.0.0.1", "127.0.0.1")
    check_master_address("192.0.2.7", "192.0.2.1")
    check_master_address("trainer.invalid", "192.0.2.1")
    with pytest.raises(SettingError, match="192.0.2.1") as caught:
        check_master_address("127.0.0.1", "192.0.2.1")
    assert "--master-address" in (caught.value.next_step or "")


def test_a_name_to_listen_on_has_to_be_known_here() -> None:
    check_master_address("127.0.0.1", "127.0.0.1", listened_on=True)
    with pytest.raises(SettingError, match="trainer.invalid.*--master-address") as caught:
        check_master_address("trainer.invalid", "192.0.2.1", listened_on=True)
    assert "--bind-address" in (caught.value.next_step or "")
