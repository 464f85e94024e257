"""`make bench`: how fast weights travel into the mock, as ratios measured side by side in one run.

Every round pushes the same random checkpoint in each way, one after the other, and copies the same bytes over a plain
loopback socket for comparison; ratios are formed round by round, and their medians are printed. Absolute figures vary
with the machine.
"""

from __future__ import annotations

import hashlib
import json
import os
import socket
import statistics
import struct
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import vime_sync
from mock_vllm import MockServer, Settings

MEBIBYTES = 512
TENSORS = 16
ROUNDS = 5
CHUNK = 1024 * 1024

Way = Callable[[], None]


def write_checkpoint(file: Path) -> bytes:
    """Write a safetensors file of random float32 tensors; returns its data."""
    size = MEBIBYTES * CHUNK // TENSORS
    data = os.urandom(MEBIBYTES * CHUNK)
    header = {
        f"t{number}": {"dtype": "F32", "shape": [size // 4], "data_offsets": [number * size, (number + 1) * size]}
        for number in range(TENSORS)
    }
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    file.write_bytes(struct.pack("<Q", len(text)) + text + data)
    return data


def raw_copy(data: bytes) -> None:
    """Send the bytes through a loopback socket, and drop them at the other end."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def drain() -> None:
            peer, _ = listener.accept()
            buffer = bytearray(CHUNK)
            with peer:
                while peer.recv_into(buffer):
                    pass

        reader = threading.Thread(target=drain)
        reader.start()
        with socket.create_connection(listener.getsockname()) as sender:
            sender.sendall(data)
        reader.join(60)


def digest(data: bytes) -> None:
    """Digest the bytes as both ends of a verified push do."""
    hashlib.sha256(data).hexdigest()


def seconds(way: Way) -> float:
    """Time one run."""
    began = time.perf_counter()
    way()
    return time.perf_counter() - began


def main() -> int:
    """Run every way in turn, print medians and ratios."""
    with tempfile.TemporaryDirectory() as folder, MockServer(Settings(model="bench", port=0)) as server:
        file = Path(folder) / "model.safetensors"
        data = write_checkpoint(file)
        ways: dict[str, Way] = {
            "raw loopback socket": lambda: raw_copy(data),
            "sha256 of the bytes": lambda: digest(data),
            "push, plain": lambda: push(file, server.url, packed=False, verify=False),
            "push, packed": lambda: push(file, server.url, packed=True, verify=False),
            "push, packed, verified": lambda: push(file, server.url, packed=True, verify=True),
        }
        for way in ways.values():
            way()
        rounds = [{name: seconds(way) for name, way in ways.items()} for _ in range(ROUNDS)]
    print(f"{MEBIBYTES} MiB in {TENSORS} tensors, {ROUNDS} rounds; ratio to the raw socket of the same round")
    for name in ways:
        times = [measured[name] for measured in rounds]
        ratios = [measured[name] / measured["raw loopback socket"] for measured in rounds]
        print(
            f"  {name:24} {statistics.median(times):6.2f} s   x{statistics.median(ratios):5.2f}"
            f"   ({min(ratios):.2f} to {max(ratios):.2f})"
        )
    return 0


def push(file: Path, url: str, *, packed: bool, verify: bool) -> None:
    """Push the checkpoint once, in buckets of 64 MiB."""
    vime_sync.push(str(file), url, packed=packed, bucket_bytes=64 * CHUNK, verify=verify)


if __name__ == "__main__":
    sys.exit(main())
