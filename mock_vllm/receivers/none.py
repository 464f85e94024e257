"""The receiver that takes metadata only: every join succeeds, every broadcast is over at once, without bytes."""

from __future__ import annotations

from mock_vllm.receivers.receiver import PlaneEvent, Sink


class NoReceiver:
    """For clients whose tensors cannot reach the mock. Digests stay unknown, so nothing can be verified."""

    delivers_bytes = False

    def __init__(self, on_event: PlaneEvent) -> None:
        self._on_event = on_event

    def join(self, address: str, port: int, rank: int, world_size: int) -> None:
        self._on_event("joined", f"metadata only: {address}:{port} was not contacted (rank {rank} of {world_size})")

    def broadcast(self, nbytes: int, sink: Sink) -> None:  # noqa: ARG002
        self._on_event("received", f"metadata only: {nbytes} bytes were announced, none read")

    def abandon(self) -> None:
        return

    def close(self) -> None:
        return
