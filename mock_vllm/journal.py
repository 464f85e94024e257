"""What happened, in order: every call and every event on the plane (docs/mock-routes.md)."""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import Any

MAX_ENTRIES = 10_000
MAX_BODY_CHARACTERS = 2_000

Entry = dict[str, Any]


class Journal:
    """A bounded list of entries; safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: deque[Entry] = deque()
        self._next = 1
        self._dropped = 0
        self._started = time.monotonic()

    def begin_call(self, method: str, path: str, query: str) -> Entry:
        """Note that a call arrived; the entry is completed by `end_call`."""
        return self._append(
            {
                "kind": "call",
                "at": self._now(),
                "seconds": None,
                "method": method,
                "path": path,
                "query": query,
                "request": "",
                "request_bytes": 0,
                "status": None,
                "response": None,
            }
        )

    def end_call(self, entry: Entry, request: bytes, request_bytes: int, status: int, response: bytes) -> None:
        """Note how a call ended. Bodies may come cut; `request_bytes` is the full length."""
        with self._lock:
            entry["seconds"] = round(self._now() - entry["at"], 6)
            entry["request"] = _text(request)
            entry["request_bytes"] = request_bytes
            entry["status"] = status
            entry["response"] = _text(response)

    def plane_event(self, rank: int, event: str, detail: str) -> None:
        """Note what happened to a rank on the plane."""
        self._append({"kind": "plane", "at": self._now(), "rank": rank, "event": event, "detail": detail})

    def read(self, since: int = 0) -> dict[str, Any]:
        """Return copies of the entries with a number above `since`, and how many were dropped."""
        with self._lock:
            return {"dropped": self._dropped, "entries": [dict(entry) for entry in self._entries if entry["n"] > since]}

    def clear(self) -> None:
        """Forget everything; numbers go on."""
        with self._lock:
            self._entries.clear()
            self._dropped = 0

    def _append(self, fields: Entry) -> Entry:
        with self._lock:
            entry = {"n": self._next, **fields}
            self._next += 1
            self._entries.append(entry)
            if len(self._entries) > MAX_ENTRIES:
                self._entries.popleft()
                self._dropped += 1
        return entry

    def _now(self) -> float:
        return round(time.monotonic() - self._started, 6)


def _text(body: bytes) -> str:
    return body.decode(errors="replace")[:MAX_BODY_CHARACTERS]
