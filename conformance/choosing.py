"""Which server a run tests: the one that is named, else one that answers here, else one that is started."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

from conformance.case import USUAL, Launch
from conformance.http_driver import Address
from conformance.servers import OneServer, Pool, Servers
from conformance.targets.base import Target, TargetError, TargetKind
from conformance.targets.mock import DEFAULT_URL, MockTarget, is_mock, started_mock
from conformance.targets.url import RealTarget

DEFAULT_RELEASE = "0.21.0"
DEFAULT_REAL_URL = "http://127.0.0.1:8001"
_LOOK_SECONDS = 0.5


class ChoiceError(ValueError):
    """No server can be tested as asked; the text says what to give."""


@dataclass(frozen=True)
class Options:
    """The command line's wishes. ``notes`` are KEY=VALUE pairs for the provenance of a recording."""

    target: str
    url: str | None
    release: str | None
    record: bool
    trainer_address: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Chosen:
    """``kind`` of server, ``where`` in words, its ``release``, and what is known of a managed environment."""

    servers: Servers
    kind: TargetKind
    where: str
    release: str
    provenance: Callable[[], dict[str, object]] = dict


def choose(options: Options) -> Chosen:
    """The servers of a run. Raises ChoiceError, TargetError, TargetUrlError."""
    return _real(options) if options.target == "real" else _mock(options)


def _answers(url: str) -> bool | None:
    """Whether a mock answers at a URL; None when nobody does."""
    try:
        return is_mock(Address.of(url), _LOOK_SECONDS)
    except TargetError:
        return None


def _found(target: Target, where: str) -> Chosen:
    return Chosen(OneServer(target), target.kind, where, target.release)


def _mock(options: Options) -> Chosen:
    if options.url:
        if not is_mock(Address.of(options.url)):
            raise ChoiceError(f"{options.url} is no mock (its answers lack x-mock-vllm): use --target=real")
        return _found(MockTarget(options.url, options.trainer_address), f"mock at {options.url}")
    if _answers(DEFAULT_URL):
        return _found(MockTarget(DEFAULT_URL, options.trainer_address), f"mock found at {DEFAULT_URL}")
    release = options.release or DEFAULT_RELEASE
    with started_mock(release):
        pass  # whether this release can be imitated is better known now than in every case
    return Chosen(Pool(_mock_starter(release)), "mock", "a mock started for this run", release)


def _mock_starter(release: str) -> Callable[[Launch, threading.Event], AbstractContextManager[Target]]:
    @contextmanager
    def start(launch: Launch, _stop: threading.Event) -> Iterator[Target]:
        with started_mock(release, launch) as url:
            yield MockTarget(url, launch=launch, expendable=True)

    return start


def _real(options: Options) -> Chosen:
    if options.url:
        return _found(RealTarget(options.url, options.trainer_address), f"real server at {options.url}")
    if _answers(DEFAULT_REAL_URL) is False:
        return _found(RealTarget(DEFAULT_REAL_URL, options.trainer_address), f"real server found at {DEFAULT_REAL_URL}")
    if options.release is None:
        raise ChoiceError(
            "--target=real needs a server: give --target-url=http://HOST:PORT or set VLLM_CONFORMANCE_URL, start one "
            "on port 8001, or give --vllm-version=X to have one started here (python -m conformance.real install X)"
        )
    from conformance.targets.managed import environment_of, provenance_of, starter

    environment = environment_of(options.release)
    where = f"managed real server, started {USUAL}"
    return Chosen(
        Pool(starter(environment)),
        "real",
        where,
        environment.version,
        lambda: provenance_of(environment),
    )
