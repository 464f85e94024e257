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


ALREADY_ACTIVE = "start_weight_update called while a weight update is already active. Call finish_weight_update first."
UNEXPECTED = "Invalid {kind}_info for NCCLWeightTransferEngine: __init__() got an unexpected keyword argument '{key}'"


class ScriptedEngine:
    """A well-behaved engine of a vLLM release, whose routes a test may replace one by one in `handlers`.

    A Transport. `calls` holds (route, body, query) in order, `held` what the one worker received. What a release does
    is written here from the contract of the releases, not taken from the package. An update of a handler's that is
    refused with 500 failed in the workers: `half_loaded` then says that the model lacks data, and `spoilt` that a later
    session went on from it, which real engines answer with 200 from 0.23 on.
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
        self.open = False
        self.half_loaded = False
        self.spoilt = False
        self.packing: tuple[bool, int] = (False, 1 << 30)
        self.weight_version = "default"

    def since(self, minor: int) -> bool:
        """Whether the release is 0.`minor` or later."""
        return int(self.version.split(".")[1]) >= minor

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
        response = handler(self, found) if handler is not None else self.well(call.route, found)
        if call.route == "/update_weights" and response.status == 500:
            self.half_loaded = True
            self.open = self.open and not self.since(23)
        return response

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
        refused = self.objection(route, body)
        if refused is not None:
            return refused
        if route == "/init_weight_transfer_engine":
            info = body["init_info"]
            self.packing = (info.get("packed", False), info.get("packed_buffer_size_bytes", 1 << 30))
            self.join(info)
        if route == "/start_weight_update":
            self.open = True
        if route == "/update_weights":
            self.spoilt |= self.half_loaded
            self.receive(body["update_info"])
        if route == "/finish_weight_update":
            self.open = self.half_loaded = False
            if self.since(27):
                self.weight_version = body.get("weight_version") or self.weight_version
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
        if route == "/reset_prefix_cache" and self.since(26):
            return as_json({"success": True}, **marks)
        if route == "/weight_info" and self.since(27):
            return as_json({"weight_version": self.weight_version}, **marks)
        if route in ("/health", "/reset_prefix_cache"):
            return Response(200)
        return as_json({"detail": "Not Found"}, 404, **marks)

    def objection(self, route: str, body: Any) -> Response | None:
        """What the release refuses: its session rules, and the place where packing is not announced."""
        if route == "/start_weight_update" and self.open:
            return refusal(ALREADY_ACTIVE)
        if route in ("/update_weights", "/finish_weight_update") and not self.open:
            name = route.removeprefix("/")
            if route == "/finish_weight_update" and self.since(23):
                return refusal("finish_weight_update called without a matching start_weight_update.")
            return refusal(f"start_weight_update must be called before {name}.")
        kind = {"/init_weight_transfer_engine": "init", "/update_weights": "update"}.get(route)
        if kind is not None and (kind == "update") == self.since(28):
            for key in body[f"{kind}_info"]:
                if key.startswith("packed"):
                    return refusal(UNEXPECTED.format(kind=kind, key=key))
        return None

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

    def _cuts(self, sizes: list[int], info: dict[str, Any]) -> list[int]:
        packed, limit = self.packing
        if not self.since(28):
            packed, limit = info.get("packed", False), info.get("packed_buffer_size_bytes", limit)
        if not packed:
            return sizes
        counts, current, filled = [], 0, False
        for size in sizes:
            current, filled = current + size, True
            if current > limit:
                counts.append(current)
                current, filled = 0, False
        return [*counts, current] if filled else counts


def closed(call: Call) -> ConnectionClosed:
    """The error of a connection that ended."""
    return ConnectionClosed(call, "the connection ended before the answer was whole (test)")
