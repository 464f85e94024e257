"""Servers whose session or engine follows other rules."""

from __future__ import annotations

import concurrent.futures
from typing import Any

import pytest

from mock_vllm.engine.core import EngineCore
from mock_vllm.engine.session import Session
from mock_vllm.engine.worker import Worker

Patching = pytest.MonkeyPatch


def a_second_start_is_fine(patching: Patching) -> None:
    """Start opens a session whether one is open or not."""
    start = Worker.start_weight_update

    def lenient(self: Worker, is_checkpoint_format: Any) -> None:
        self.session.active = False
        start(self, is_checkpoint_format)

    patching.setattr(Worker, "start_weight_update", lenient)


def updates_need_no_start(patching: Patching) -> None:
    """An update outside a session opens one."""
    update = Worker.update_weights

    def lenient(self: Worker, update_info: Any) -> None:
        if not self.session.active:
            self.start_weight_update(True)
        update(self, update_info)

    patching.setattr(Worker, "update_weights", lenient)


def finish_needs_no_start(patching: Patching) -> None:
    """Finish outside a session is a 200 that does nothing."""
    finish = Worker.finish_weight_update

    def lenient(self: Worker) -> None:
        if self.session.active:
            finish(self)

    patching.setattr(Worker, "finish_weight_update", lenient)


def finish_forgets_to_close(patching: Patching) -> None:
    """Finish answers 200 and leaves the session open."""
    patching.setattr(Session, "close", lambda self: None)


def the_format_outlasts_its_session(patching: Patching) -> None:
    """A start in kernel format decides for the sessions after it, too."""
    opened = Session.open

    def sticky(self: Session, checkpoint_format: bool) -> None:
        opened(self, checkpoint_format and not getattr(self, "kernel_seen", False))
        if not checkpoint_format:
            self.kernel_seen = True  # type: ignore[attr-defined]

    patching.setattr(Session, "open", sticky)


def the_format_is_ignored(patching: Patching) -> None:
    """`is_checkpoint_format` false is read and forgotten (0.25 does)."""
    opened = Session.open
    patching.setattr(Session, "open", lambda self, checkpoint_format: opened(self, True))


def the_engine_takes_calls_at_once(patching: Patching) -> None:
    """The scheduler answers although an update is blocked."""

    def at_once(self: EngineCore, call: str, shown: str, run: Any) -> concurrent.futures.Future[Any]:
        if call in ("collective_rpc", "reset"):
            return submit(self, call, shown, run)
        future: concurrent.futures.Future[Any] = concurrent.futures.Future()
        future.set_result(run())
        return future

    submit = EngineCore._submit
    patching.setattr(EngineCore, "_submit", at_once)


def pause_does_not_pause(patching: Patching) -> None:
    """Pause answers that it did, and did not."""
    patching.setattr(EngineCore, "_set_paused", lambda self, paused: None)
