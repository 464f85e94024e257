"""Where the engine is, and where it can find the trainer."""

from __future__ import annotations

import ipaddress
import socket
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from vime_sync.errors import SettingError
from vime_sync.redaction import without_credentials


@dataclass(frozen=True, slots=True)
class EngineAddress:
    """An engine's base URL, taken apart. `base` has no credentials, no trailing slash and brackets around IPv6."""

    base: str
    host: str
    port: int
    credentials: tuple[str, str] | None = None


def bracketed(host: str) -> str:
    """`host` as a URL writes it: an IPv6 address in brackets."""
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


def parse_engine_url(url: str) -> EngineAddress:
    """Takes the base URL of an engine apart. Raises SettingError, which never shows the credentials."""
    shown = without_credentials(url)

    def wrong(why: str) -> SettingError:
        return SettingError("engine URL", f"{shown!r} {why}", next_step="write it as http://HOST:PORT")

    if not isinstance(url, str) or any(character.isspace() or not character.isprintable() for character in url):
        raise wrong("holds white space or control characters")
    try:
        parts = urlsplit(url)
        port = parts.port
        host = parts.hostname
    except ValueError as error:
        # The text of the error may quote the network location, credentials included.
        raise wrong("is not a URL" if "@" in url else f"is not a URL ({error})") from None
    if parts.scheme not in ("http", "https"):
        raise wrong("does not begin with http:// or https://")
    if not host:
        raise wrong("names no host")
    if ":" in host and f"[{host}]" not in url.lower():
        raise wrong("has an IPv6 address without brackets")
    if port == 0:
        raise wrong("has port 0")
    if parts.query or parts.fragment:
        raise wrong("has a query or a fragment; a base URL has none")
    number = port or (443 if parts.scheme == "https" else 80)
    location = bracketed(host) + (f":{port}" if port else "")
    credentials = None
    if parts.username is not None:
        credentials = (unquote(parts.username), unquote(parts.password or ""))
    return EngineAddress(f"{parts.scheme}://{location}{parts.path.rstrip('/')}", host, number, credentials)


def resolved(host: str, port: int) -> list[tuple[socket.AddressFamily, str]]:
    """The addresses of a host name, IPv4 first: a listener on the trainer is likelier to be reached that way.

    Raises SettingError when the name has none.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise SettingError("address", f"{host!r} cannot be resolved ({error})") from None
    pairs = [(family, str(address[0])) for family, _, _, _, address in found]
    return sorted(dict.fromkeys(pairs), key=lambda pair: pair[0] != socket.AF_INET)


def local_address_towards(host: str, port: int) -> str:
    """The address of this machine from which packets to `host` leave. Nothing is sent.

    A datagram socket that is connected has asked the routing table and holds the answer. Raises SettingError.
    """
    failure: OSError | None = None
    for family, address in resolved(host, port):
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            try:
                probe.connect((address, port))
                return str(probe.getsockname()[0])
            except OSError as error:
                failure = error
    raise SettingError(
        "master address", f"no route to {host} ({failure})", next_step="name an address with --master-address"
    )


def is_loopback(host: str) -> bool:
    """Whether every address of `host` is a loopback one. A name that does not resolve here is not."""
    try:
        addresses = [ipaddress.ip_address(address.split("%")[0]) for _, address in resolved(host, 0)]
    except (SettingError, ValueError):
        return False
    return bool(addresses) and all(address.is_loopback for address in addresses)


def check_master_address(master: str, engine_host: str, *, listened_on: bool = False) -> None:
    """Refuses what the engine could not connect to: a wildcard, or a loopback address for an engine elsewhere.

    listened_on  this machine is to listen there too, so that it has to know the name; else it is the engine's to know

    Raises SettingError.
    """
    try:
        wildcard = master == "" or ipaddress.ip_address(master).is_unspecified
    except ValueError:
        wildcard = False
    advice = "give --master-address an address of this machine that the engine can reach"
    if wildcard:
        raise SettingError("master address", f"{master!r} is no address to connect to", next_step=advice)
    if is_loopback(master) and not is_loopback(engine_host):
        raise SettingError(
            "master address",
            f"{master!r} is this machine's own and the engine is on {engine_host}",
            next_step=advice,
        )
    if listened_on:
        try:
            resolved(master, 0)
        except SettingError:
            step = f"{advice}; a name that only the engine knows needs --bind-address too"
            why = f"{master!r} (--master-address) cannot be resolved on this machine"
            raise SettingError("master address", why, next_step=step) from None
