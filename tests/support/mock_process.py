"""The mock as a process of its own, so that a test may kill it."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from types import TracebackType

import requests


class MockProcess:
    """`python -m mock_vllm serve` on a free port; ready when entered, gone when left."""

    def __init__(self, *arguments: str) -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        self._command = [sys.executable, "-m", "mock_vllm", "serve", *arguments, "--port", str(port), "--quiet"]
        self.process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> MockProcess:
        self.process = subprocess.Popen(self._command)
        deadline = time.monotonic() + 20.0
        while time.monotonic() < deadline:
            try:
                if requests.get(f"{self.url}/health", timeout=1).status_code == 200:
                    return self
            except requests.ConnectionError:
                time.sleep(0.02)
            assert self.process.poll() is None, "the mock did not start"
        self.kill()
        raise AssertionError("the mock did not become healthy")

    def kill(self) -> None:
        """Ends it as a crash would."""
        assert self.process is not None
        self.process.kill()
        self.process.wait(10.0)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()
