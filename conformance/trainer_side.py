"""The trainer that a case plays: its groups on the TCP plane, and the facts of this run that requests name."""

from __future__ import annotations

import socket
import time

from conformance.plane import MeetingTimeoutError, PeerGoneError, Trainer
from conformance.steps import Placeholder
from conformance.targets.base import Target

LOOPBACK = "127.0.0.1"


class StepFailedError(RuntimeError):
    """A step could not be carried out; the case ends there."""


class _Known(dict[Placeholder, object]):
    """Facts of this run; the model's id is asked for only by a request that names it."""

    def __init__(self, target: Target, facts: dict[Placeholder, object]) -> None:
        super().__init__(facts)
        self._target = target

    def __missing__(self, key: Placeholder) -> object:
        if key is Placeholder.MODEL:
            return self._target.model_id
        raise KeyError(key)


class TrainerSide:
    """Rank 0 of each group that the case makes; the newest one is the one in use."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._trainers: list[Trainer] = []

    def deadline(self) -> float:
        """When a step that begins now must be over, on ``time.monotonic()``'s clock."""
        return time.monotonic() + self._target.deadline_seconds

    def known(self) -> dict[Placeholder, object]:
        """The values of this run's placeholders. Port 0 before anything listens."""
        port = self._trainers[-1].port if self._trainers else 0
        size = 1 + self._target.world_size
        facts: dict[Placeholder, object] = {
            Placeholder.ADDRESS: self._target.trainer_address,
            Placeholder.PORT: port,
            Placeholder.PORT_AS_TEXT: str(port),
            Placeholder.WORLD_SIZE: size,
            Placeholder.WORLD_SIZE_PLUS_ONE: size + 1,
        }
        return _Known(self._target, facts)

    def listen(self) -> None:
        """Opens a new group's port: on loopback, or on every interface when the server reaches us from elsewhere."""
        host = LOOPBACK if self._target.trainer_address == LOOPBACK else "0.0.0.0"
        self._trainers.append(Trainer(1 + self._target.world_size, host))

    def meet(self, watch: socket.socket | None) -> None:
        """Lets the ranks in, or returns when the server answers on ``watch`` first. Raises StepFailedError."""
        try:
            if self._trainers[-1].meet(self.deadline(), watch):
                self._target.group_is_made()
        except MeetingTimeoutError as error:
            raise StepFailedError(f"the server neither answers nor joins: {error}") from error

    def broadcast(self, data: bytes, only: int | None = None) -> None:
        """Sends one frame. A receiver that has gone is no failure here: the server's answer says what happened."""
        if not self._trainers:
            return
        try:
            self._trainers[-1].broadcast(data, self.deadline(), only)
        except PeerGoneError:
            return

    def leave(self, reason: str | None) -> None:
        """Leaves the newest group, with an abort frame first when there is a reason."""
        if reason is not None:
            self._trainers[-1].abort(reason)
        self._trainers[-1].close()

    def close(self) -> None:
        """Leaves every group."""
        for trainer in self._trainers:
            trainer.close()
