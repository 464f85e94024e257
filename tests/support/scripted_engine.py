"""An engine behind the client's transport seam: answers as scripted, receives over the plane, needs no HTTP."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Mapping
from typing import Any

from requests.structures import CaseInsensitiveDict

from tests.support.plane_receiver import PlaneReceiver
from vime_sync.calls import Call
from vime_sync.errors import ConnectionClosed
from vime_sync.transport import Response

ITEM_SIZES = {"bool": 1, "uint8": 1, "int16": 2, "bfloat16": 2, "float16": 2, "float32": 4, "int64": 8}
MESSAGES = {
    "/init_weight_transfer_engine": "Weight transfer initialized",
    "/start_weight_update": "Weight update started",
    "/update_weights": "Weights updated",
    "/finish_weight_update": "Weight update finished",
}

Handler = Callable[["ScriptedEngine", dict[str, Any]], Response]


def as_json(found: object, status: int = 200, **headers: str) -> Response:
    """A JSON answer."""
    kept = CaseInsensitiveDict({"content-type": "application/json", **headers})
    return Response(status, json.dumps(found).encode(), kept)


def refusal(message: str, status: int = 500) -> Response:
    """vLLM's error envelope."""
    error = {"message": message, "type": "InternalServerError", "param": None, "code": status}
    return as_json({"error": error}, status)


class ScriptedEngine:
    """A well-behaved engine of vLLM 0.21.0, whose routes a test may replace one by one in `handlers`.

    A Transport. `calls` holds (route, body, query) in order, `held` what the one worker received.
    """

    def __init__(self, *, version: str = "0.21.0", world_size: int = 1, mock: bool = True) -> None:
        self.engine = "http://engine"
        self.version = version
        self.world_size = world_size
        self.mock = mock
        self.handlers: dict[str, Handler] = {}
        self.calls: list[tuple[str, Any, dict[str, str]]] = []
        self.held: dict[str, dict[str, Any]] = {}
        self.receivers: list[PlaneReceiver] = []
        self.aborted = threading.Event()
        self.updates = 0

    @property
    def routes(self) -> list[str]:
        """The routes called, in order."""
        return [route for route, _, _ in self.calls]

    def request(
        self,
        call: Call,
        method: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        on_sent: Callable[[], None] | None = None,
        **_limits: object,
    ) -> Response:
        """See vime_sync.transport.Transport."""
        assert method == ("GET" if body is None else "POST")
        found = json.loads(body) if body is not None else None
        self.calls.append((call.route, found, dict(query or {})))
        if on_sent is not None:
            on_sent()
        handler = self.handlers.get(call.route)
        if handler is not None:
            return handler(self, found)
        return self.well(call.route, found)

    def abort(self) -> None:
        """See vime_sync.transport.Transport."""
        self.aborted.set()
        self.leave()

    def close(self) -> None:
        """See vime_sync.transport.Transport."""
        self.leave()

    def leave(self) -> None:
        """Closes the worker's connections."""
        for receiver in self.receivers:
            receiver.close()
        self.receivers.clear()

    def well(self, route: str, body: Any) -> Response:
        """What a well-behaved engine does and answers."""
        marks = {"x-mock-vllm": "test"} if self.mock else {}
        if route == "/init_weight_transfer_engine":
            self.join(body["init_info"])
        if route == "/update_weights":
            self.receive(body["update_info"])
        if route == "/finish_weight_update":
            for record in self.held.values():
                record["live"] = True
        plain: dict[str, object] = {
            "/version": {"version": self.version},
            "/get_world_size": {"world_size": self.world_size},
            "/is_paused": {"is_paused": False},
            "/v1/models": {"object": "list", "data": [{"id": "tiny"}]},
            "/pause": {"status": "paused"},
            "/resume": {"status": "resumed"},
        }
        if route in plain:
            return as_json(plain[route], **marks)
        if route in MESSAGES:
            return as_json({"message": MESSAGES[route]}, **marks)
        if route == "/mock/weights" and self.mock:
            ranks = [{"rank": rank, "weights": self.held} for rank in range(self.world_size)]
            return as_json({"schema": "mock-vllm/weights/1", "ranks": ranks}, **marks)
        if route in ("/health", "/reset_prefix_cache"):
            return Response(200)
        return as_json({"detail": "Not Found"}, 404, **marks)

    def join(self, info: dict[str, Any]) -> None:
        """Makes all workers join."""
        self.receivers = [
            PlaneReceiver(info["master_port"], info["rank_offset"] + worker, info["world_size"])
            for worker in range(self.world_size)
        ]
        for receiver in self.receivers:
            status, reason = receiver.reply()
            assert status == 0, reason

    def receive(self, info: dict[str, Any]) -> None:
        """Receives a bucket by its metadata, as vLLM cuts it, and keeps the digests of worker 0."""
        self.updates += 1
        sizes = []
        for dtype, shape in zip(info["dtype_names"], info["shapes"], strict=True):
            size = ITEM_SIZES[dtype]
            for length in shape:
                size *= length
            sizes.append(size)
        data = b""
        for count in self._cuts(sizes, info):
            for worker, receiver in enumerate(self.receivers):
                kind, _, payload = receiver.frame()
                assert (kind, len(payload)) == (1, count)
                data += payload if worker == 0 else b""
        for name, dtype, shape, size in zip(info["names"], info["dtype_names"], info["shapes"], sizes, strict=True):
            piece, data = data[:size], data[size:]
            self.held[name] = {
                "dtype": dtype,
                "shape": shape,
                "nbytes": size,
                "sha256": hashlib.sha256(piece).hexdigest(),
                "origin": "transfer",
                "update": self.updates,
                "loaded": True,
                "live": False,
            }

    @staticmethod
    def _cuts(sizes: list[int], info: dict[str, Any]) -> list[int]:
        if not info.get("packed"):
            return sizes
        counts, current, filled = [], 0, False
        for size in sizes:
            current, filled = current + size, True
            if current > info["packed_buffer_size_bytes"]:
                counts.append(current)
                current, filled = 0, False
        return [*counts, current] if filled else counts


def closed(call: Call) -> ConnectionClosed:
    """The error of a connection that ended."""
    return ConnectionClosed(call, "the connection ended before the answer was whole (test)")
