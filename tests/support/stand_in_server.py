"""Stands in for a real vLLM: it has processes of its own that do not want to end, and takes vLLM's command line.

Environment: ``STAND_IN_PIDS`` is a file to which each of its processes appends its id; ``STAND_IN`` is what it does:
``serve``, ``die`` at once with a message and status 7, ``hang`` without ever answering.
"""

from __future__ import annotations

import http.server
import os
import signal
import sys
import time
from pathlib import Path


def note() -> None:
    """Append this process's id to the list."""
    with Path(os.environ["STAND_IN_PIDS"]).open("a") as file:
        file.write(f"{os.getpid()}\n")


def stubborn_children() -> None:
    """One child that ignores SIGTERM, and one that has left the process group and the parent, as a daemon does."""
    if os.fork() == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        note()
        time.sleep(600)
        os._exit(0)
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            note()
            time.sleep(600)
        os._exit(0)


class Handler(http.server.BaseHTTPRequestHandler):
    """``GET /health`` is 200; ``GET /stop`` ends the server with status 3."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()
        if self.path == "/stop":
            os._exit(3)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the base class's)
        """Into the log."""
        print("asked:", format % args, flush=True)


def main(arguments: list[str]) -> None:
    """What ``STAND_IN`` says, on the port that follows ``--port``."""
    note()
    print("stand-in:", " ".join(arguments), flush=True)
    does = os.environ.get("STAND_IN", "serve")
    if does == "die":
        print("RuntimeError: no model here", flush=True)
        sys.exit(7)
    stubborn_children()
    if does == "hang":
        time.sleep(600)
    port = int(arguments[arguments.index("--port") + 1])
    http.server.HTTPServer(("127.0.0.1", port), Handler).serve_forever()


if __name__ == "__main__":
    main(sys.argv[1:])
