"""A real vLLM server, by its URL."""

from __future__ import annotations

import json
from functools import cached_property
from typing import Any

from conformance.case import USUAL, Case, Launch, Need
from conformance.request_data import FINISH_PATH, START_PATH, UPDATE_PATH
from conformance.steps import Call, Init, Update
from conformance.targets.base import HttpTarget, ReceivedTensor, TargetError, TargetKind
from conformance.tiny_model import tensors

FIRST_WEIGHT_VERSION = "default"
"""The label of the weights that a server was started with (0.27 on)."""
_NO_SESSION = ("must be called before finish_weight_update", "without a matching start_weight_update")


class RealTarget(HttpTarget):
    """A real vLLM with dev mode on.

    What it received is read through ``POST /collective_rpc``, from a worker extension with the methods
    ``received_weights`` and ``forget_received_weights``; without it those cases are not testable.
    """

    kind: TargetKind = "real"
    deadline_seconds = 20.0
    patience = 1.0

    def __init__(
        self,
        base_url: str,
        trainer_address: str = "127.0.0.1",
        launch: Launch = USUAL,
        expendable: bool = False,
    ) -> None:
        super().__init__(base_url, trainer_address, launch, expendable)
        self._group_was_made = False

    def group_is_made(self) -> None:
        """From here on no case can see a server without a group: a real one never leaves it."""
        self._group_was_made = True

    def _empty_update(self) -> str:
        # An empty bucket needs no broadcast, yet asks for the group: the one probe that changes nothing.
        self.reset()
        self.ask("POST", START_PATH, {})
        info: dict[str, list[str]] = {"names": [], "dtype_names": [], "shapes": []}
        reply = self.ask("POST", UPDATE_PATH, {"update_info": info})
        self.ask("POST", FINISH_PATH, {})
        return f"{reply.status} {json.dumps(reply.body)}"

    @cached_property
    def _had_no_group(self) -> bool:
        return "not initialized" in self._empty_update()

    @cached_property
    def _rpc_reason(self) -> str | None:
        reply = self.ask("POST", "/collective_rpc", {"method": "received_weights"})
        if reply.status == 200 and isinstance(reply.body, dict) and reply.body.get("results"):
            return None
        return "the server has no worker extension that tells what it received"

    @cached_property
    def _probe(self) -> tuple[int, int]:
        """Statuses of an init over the TCP plane and of one update with a tensor of the tiny model."""
        from conformance.execution import execute

        lm_head = next(tensor for tensor in tensors("A") if tensor.name == "lm_head.weight")
        start = Call("POST", START_PATH, json={})
        finish = Call("POST", FINISH_PATH, json={})
        case = Case("PROBE", "", (Init(), start, Update((lm_head,)), finish), requirement="", source="")
        self.reset()
        statuses = [answer.outcome.get("status") for answer in execute(case, self).answers]
        self.reset()
        numbers = [status if isinstance(status, int) else 0 for status in statuses] + [0] * 4
        return numbers[0], numbers[2]

    def offers(self, need: Need) -> str | None:
        """None when the server has what a case needs, else the reason. Probed once each. Raises TargetError."""
        if need == "no group":
            if not self._group_was_made and self._had_no_group:
                return None
            return "the server has joined a group before: needs one that was just started"
        if need == "digests":
            return self._rpc_reason
        if need == "completions":
            return self.lacks_completions
        init_status, update_status = self._probe
        if init_status != 200:
            return f"an init over the TCP plane answered {init_status or 'nothing'}"
        if need in ("tiny model", "checked model") and update_status != 200:
            return "the server serves another model than the suite's tiny one"
        return None

    def reset(self) -> None:
        """Closes an open session, makes the model whole, resumes, forgets, and proves all of it. Raises TargetError."""
        if not self.launch.dev_mode:
            return  # none of the routes that change anything exist
        self._close_session()
        self.ask("POST", "/resume")
        if self._fact("/is_paused", "is_paused") is not False:
            raise TargetError(f"{self.base_url} is still paused after /resume")
        if self._has_weight_version:
            self.ask("POST", "/update_weight_version", {"new_version": FIRST_WEIGHT_VERSION})
        if self._rpc_reason is None:
            self.ask("POST", "/collective_rpc", {"method": "forget_received_weights"})
            if any(self.received()):
                raise TargetError(f"{self.base_url} still lists received weights after forget_received_weights")

    def _close_session(self) -> None:
        # From 0.23 on a failed update closes the session and leaves the model without data: only an empty session
        # puts the old weights back. So after any failure: start, finish, and a finish that is refused as the proof.
        closed = self._finish_says()
        if closed is None:
            if self.ask("POST", START_PATH, {}).status != 200:
                raise TargetError(f"{self.base_url} opens no session after a finish that found none")
            closed = self._finish_says()
        if self.launch.weight_transfer and (closed is None or self._finish_says() is not None):
            raise TargetError(f"{self.base_url} does not close its session: finish answered {closed}")

    def _finish_says(self) -> str | None:
        """What a finish answers; None when it says that there was no session."""
        reply = self.ask("POST", FINISH_PATH, {})
        text = f"{reply.status} {json.dumps(reply.body)}"
        return None if any(said in text for said in _NO_SESSION) else text

    @cached_property
    def _has_weight_version(self) -> bool:
        return self.ask("GET", "/weight_info").status == 200

    def received(self) -> list[dict[str, ReceivedTensor]]:
        """What the worker extension says, per worker. Raises TargetError."""
        reply = self.ask("POST", "/collective_rpc", {"method": "received_weights"})
        if reply.status != 200 or not isinstance(reply.body, dict):
            raise TargetError(f"received_weights answered {reply.status}: {reply.body}")
        try:
            return [_tensors_of(worker) for worker in reply.body["results"]]
        except (LookupError, TypeError, ValueError) as error:
            raise TargetError(f"received_weights answered something else: {type(error).__name__}: {error}") from error


def _tensors_of(worker: Any) -> dict[str, ReceivedTensor]:
    # The route keeps lists and objects as JSON and prints everything else as text.
    entries = json.loads(worker) if isinstance(worker, str) else worker
    return {
        entry["name"]: ReceivedTensor(entry["dtype"], tuple(entry["shape"]), entry["nbytes"], entry["sha256"])
        for entry in entries
    }
