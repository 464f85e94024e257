"""Two hosts that share nothing but a link: network namespaces of this machine, joined by a veth pair."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# Runs inside a namespace, where nothing else of this process can go: waits until the URL answers, prints the body.
_FETCH = """
import sys, time, urllib.request
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
end = time.monotonic() + float(sys.argv[2])
while True:
    try:
        sys.stdout.buffer.write(opener.open(sys.argv[1], timeout=5).read())
        break
    except OSError as error:
        if time.monotonic() > end:
            sys.exit(f"{sys.argv[1]}: {error}")
        time.sleep(0.02)
"""


class NamespacesUnavailableError(Exception):
    """This machine or this user makes no network namespaces; `reason` says why."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class NoAnswerError(Exception):
    """A URL did not answer a host in time; `reason` says what happened instead."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True)
class Host:
    """One network namespace. Commands in it share this machine's files and nothing of its network."""

    namespace: str

    def command(self, *words: str | Path) -> list[str]:
        """The words of a command line that runs inside the namespace."""
        return ["ip", "netns", "exec", self.namespace, *map(str, words)]

    def run(self, *words: str | Path, seconds: float = 60.0) -> subprocess.CompletedProcess[str]:
        """Runs a command to its end. Raises TimeoutExpired after ``seconds``."""
        return subprocess.run(
            self.command(*words), capture_output=True, text=True, timeout=seconds, check=False, stdin=subprocess.DEVNULL
        )

    def fetch(self, url: str, seconds: float = 5.0) -> Any:
        """The JSON (None: empty body) that ``url`` answers to this host. Raises NoAnswerError after ``seconds``."""
        done = self.run(sys.executable, "-c", _FETCH, url, str(seconds), seconds=seconds + 15)
        if done.returncode != 0:
            raise NoAnswerError(done.stderr.strip())
        return json.loads(done.stdout) if done.stdout else None

    def link(self, state: str) -> None:
        """Takes this end of the link ``"up"`` or ``"down"``."""
        _ip("-n", self.namespace, "link", "set", "eth0", state)


@contextlib.contextmanager
def linked_hosts(
    addresses: tuple[str, str], also: tuple[str, str], names: tuple[str, str]
) -> Iterator[tuple[Host, Host]]:
    """Two hosts with these addresses on a link of their own; gone afterwards, with all that runs in them.

    ``also`` is one more address of each that the other has no route to, ``names`` lines for its ``/etc/hosts``; both
    may be empty. Raises NamespacesUnavailableError.
    """
    if shutil.which("ip") is None:
        raise NamespacesUnavailableError("the command ip is missing (Debian package iproute2)")
    if os.geteuid() != 0:
        raise NamespacesUnavailableError("making network namespaces needs root")
    first, second = (Host(f"wsc-{os.getpid()}-{number}") for number in (1, 2))
    try:
        try:
            _ip("netns", "add", first.namespace)
            _ip("netns", "add", second.namespace)
            _ip("-n", first.namespace, "link", "add", "eth0", "type", "veth", "peer", "eth0", "netns", second.namespace)
        except subprocess.CalledProcessError as error:
            raise NamespacesUnavailableError(error.stderr.strip()) from error
        for host, address, another, lines in zip((first, second), addresses, also, names, strict=True):
            _write_hosts_file(host, lines)
            _ip("-n", host.namespace, "address", "add", f"{address}/30", "dev", "eth0")
            _ip("-n", host.namespace, "link", "set", "lo", "up")
            host.link("up")
            if another:
                _ip("-n", host.namespace, "address", "add", f"{another}/32", "dev", "lo")
        yield first, second
    finally:
        _remove(first)
        _remove(second)


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], capture_output=True, text=True, timeout=20, check=True)


def _write_hosts_file(host: Host, lines: str) -> None:
    file = Path("/etc/netns", host.namespace, "hosts")  # iproute2 shows it inside the namespace as /etc/hosts
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"127.0.0.1 localhost\n{lines}\n", encoding="utf-8")


def _remove(host: Host) -> None:
    """Ends what runs in the namespace and removes it; its end of the link goes with it."""
    listed = subprocess.run(
        ["ip", "netns", "pids", host.namespace], capture_output=True, text=True, timeout=20, check=False
    )
    for pid in listed.stdout.split():
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(pid), 9)
    subprocess.run(["ip", "netns", "del", host.namespace], capture_output=True, timeout=20, check=False)
    shutil.rmtree(Path("/etc/netns", host.namespace), ignore_errors=True)
