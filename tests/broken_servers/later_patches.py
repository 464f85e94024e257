"""Servers of a later release in which one function of the mock does something else."""

from __future__ import annotations

import concurrent.futures
from typing import Any

import pytest

from mock_vllm.engine.core import EngineCore
from mock_vllm.engine.infos import InfoParser
from mock_vllm.engine.transfer import TransferEngine
from mock_vllm.engine.worker import Worker
from mock_vllm.model.layout import Layout

Patching = pytest.MonkeyPatch


def finish_forgets_the_label(patching: Patching) -> None:
    """Finish closes the session and drops the label that came with it."""
    finish = EngineCore.finish_weight_update
    patching.setattr(EngineCore, "finish_weight_update", lambda self, label: finish(self, None))


def the_label_is_set_before_the_finish(patching: Patching) -> None:
    """A finish that is refused sets its label all the same."""

    def finish(self: EngineCore, label: str | None) -> None:
        if label is not None:
            self.weight_version = label
        self.executor.collective_rpc("finish_weight_update", ())

    patching.setattr(EngineCore, "_finish", finish)


def the_label_is_answered_at_once(patching: Patching) -> None:
    """The label is read beside the engine's queue."""

    def at_once(self: EngineCore) -> concurrent.futures.Future[Any]:
        future: concurrent.futures.Future[Any] = concurrent.futures.Future()
        future.set_result(self.weight_version)
        return future

    patching.setattr(EngineCore, "get_weight_version", at_once)


def a_draft_session_opens(patching: Patching) -> None:
    """A draft update needs no draft model."""
    patching.setattr(Worker, "start_draft_weight_update", lambda self: self.start_weight_update(True))


def a_shutdown_is_always_possible(patching: Patching) -> None:
    """A shutdown inside a session is accepted."""

    def shutdown(self: Worker) -> None:
        self.shutdown()
        self.group = None

    patching.setattr(Worker, "shutdown_weight_transfer_engine", shutdown)


def a_shutdown_keeps_the_group(patching: Patching) -> None:
    """A shutdown answers and leaves the group as it was."""
    shutdown = Worker.shutdown_weight_transfer_engine

    def keeping(self: Worker) -> None:
        patching_shutdown, self.shutdown = self.shutdown, lambda: None  # type: ignore[method-assign]
        try:
            shutdown(self)
        finally:
            self.shutdown = patching_shutdown  # type: ignore[method-assign]

    patching.setattr(Worker, "shutdown_weight_transfer_engine", keeping)


def checksums_see_no_session(patching: Patching) -> None:
    """Parameters are digested although a session took them apart."""

    def digests(self: Worker) -> dict[str, str]:
        return {f"dp0:pp0:pcp0:tp{self.rank}:{name}": digest for name, digest in self._loader.checksums().items()}

    patching.setattr(Worker, "compute_weight_checksums", digests)


def any_rendezvous_will_do(patching: Patching) -> None:
    """`init_info` is not asked how its group meets."""
    parse = InfoParser.parse

    def lenient(self: InfoParser, given: Any) -> Any:
        self._check = None if self._label == "init_info" else self._check
        return parse(self, given)

    patching.setattr(InfoParser, "parse", lenient)


def packing_is_forgotten(patching: Patching) -> None:
    """The packing that init announced is not applied."""
    init = TransferEngine.init

    def forgetting(self: TransferEngine, init_info: Any) -> Any:
        group = init(self, init_info)
        self._packing.packed = False
        return group

    patching.setattr(TransferEngine, "init", forgetting)


def packing_outlasts_its_group(patching: Patching) -> None:
    """Once a group was packed, every later one is."""
    init = TransferEngine.init

    def keeping(self: TransferEngine, init_info: Any) -> Any:
        before = self._packing
        group = init(self, init_info)
        if before is not None and before.packed:
            self._packing = before
        return group

    patching.setattr(TransferEngine, "init", keeping)


def a_start_forgets_what_a_failed_session_buffered(patching: Patching) -> None:
    """A start after a failed update begins every layer anew, so that a blind retry is harmless."""
    begin = Layout.begin_session

    def fresh(self: Layout) -> None:
        self.end_session()
        begin(self)

    patching.setattr(Layout, "begin_session", fresh)


def arrays_go_to_every_worker(patching: Patching) -> None:
    """An array of updates is handed on as it is."""
    patching.setattr(Worker, "_own", lambda self, update_info: update_info)
