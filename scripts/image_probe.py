"""Asks a running mock what the image check wants to know. Standard library alone: it runs before anything is installed.

image_probe.py healthy URL SECONDS       waits until /health answers 200
image_probe.py version URL RELEASE       /version says RELEASE, and the header of the mock is there
image_probe.py weights URL SAFETENSORS   every tensor of the file arrived by transfer, is live, and has the same sha256
image_probe.py received URL SAFETENSORS  the same of a real vLLM with this project's plugin: what its workers received
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class ProbeError(Exception):
    """The mock is not as it should be."""


def get(url: str, seconds: float) -> tuple[bytes, Any]:
    """Body and headers of a 200 answer. Raises OSError (urllib's URLError included) otherwise."""
    with _OPENER.open(url, timeout=seconds) as answer:
        return answer.read(), answer.headers


def healthy(url: str, seconds: float) -> str:
    """Waits up to ``seconds`` for ``/health``."""
    began = time.monotonic()
    last = "no answer"
    while time.monotonic() - began < seconds:
        try:
            get(f"{url}/health", 2.0)
        except OSError as error:
            last = str(error)
            time.sleep(0.05)
        else:
            return f"healthy {time.monotonic() - began:.2f} s after the first question"
    raise ProbeError(f"{url}/health did not answer 200 within {seconds:g} s ({last})")


def version(url: str, release: str) -> str:
    """Compares the release that the server imitates."""
    body, headers = get(f"{url}/version", 5.0)
    answered = json.loads(body)["version"]
    if answered != release:
        raise ProbeError(f"{url}/version says {answered}, not {release}")
    if not headers["x-mock-vllm"]:
        raise ProbeError(f"{url}/version has no header x-mock-vllm: another server answers there")
    return f"imitates vLLM {answered}, mock version {headers['x-mock-vllm']}"


def checkpoint_digests(path: Path) -> dict[str, str]:
    """Name to sha256 of the raw bytes, read by the format's own description: header length, JSON header, data."""
    data = path.read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:start])
    return {
        name: hashlib.sha256(data[start + entry["data_offsets"][0] : start + entry["data_offsets"][1]]).hexdigest()
        for name, entry in header.items()
        if name != "__metadata__"
    }


def weights(url: str, path: Path) -> str:
    """Compares what every rank holds with the file."""
    expected = checkpoint_digests(path)
    ranks = json.loads(get(f"{url}/mock/weights", 30.0)[0])["ranks"]
    if not ranks or not expected:
        raise ProbeError(f"nothing to compare: {len(ranks)} ranks, {len(expected)} tensors in {path}")
    for rank in ranks:
        held = rank["weights"]
        for name, digest in expected.items():
            entry = held.get(name)
            if entry is None:
                raise ProbeError(f"rank {rank['rank']} does not hold {name}")
            if (entry["sha256"], entry["origin"], entry["live"]) != (digest, "transfer", True):
                raise ProbeError(
                    f"rank {rank['rank']}: {name} is {entry}, expected sha256 {digest}, transferred and live"
                )
    return f"{len(expected)} tensors on {len(ranks)} rank(s), every sha256 equal to the file's"


def received(url: str, path: Path) -> str:
    """Compares what every worker of a managed real server received, in all, with the file."""
    expected = checkpoint_digests(path)
    question = json.dumps({"method": "received_weights"}).encode()
    request = urllib.request.Request(f"{url}/collective_rpc", question, {"Content-Type": "application/json"})
    with _OPENER.open(request, timeout=30.0) as answer:
        workers = json.loads(answer.read())["results"]
    for worker in workers:
        if {entry["name"]: entry["sha256"] for entry in worker} != expected:
            raise ProbeError(f"a worker received {len(worker)} tensors that are not the {len(expected)} of {path}")
    return f"{len(expected)} tensors on {len(workers)} worker(s), every sha256 equal to the file's"


def main(arguments: list[str]) -> int:
    """Prints one line. Returns 0, 1 when the mock is not as it should be, 2 for a wrong call."""
    try:
        match arguments:
            case ["healthy", url, seconds]:
                line = healthy(url, float(seconds))
            case ["version", url, release]:
                line = version(url, release)
            case ["weights", url, path]:
                line = weights(url, Path(path))
            case ["received", url, path]:
                line = received(url, Path(path))
            case _:
                sys.stderr.write(f"{__doc__}\n")
                return 2
    except (ProbeError, OSError, ValueError, KeyError) as error:
        sys.stderr.write(f"image_probe: {error!s}\n")
        return 1
    sys.stdout.write(f"{line}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
