"""Puts an engine together from settings: one worker a rank, the executor, the queue."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import partial

from mock_vllm.engine.core import EngineCore
from mock_vllm.engine.executor import Executor, InProcessExecutor, MultiprocExecutor
from mock_vllm.engine.generation import DEFAULT_VOCABULARY, Generation
from mock_vllm.engine.transfer import TransferEngine
from mock_vllm.engine.worker import Worker
from mock_vllm.journal import Journal
from mock_vllm.model.checked_loader import CheckedLoader
from mock_vllm.model.directory import ModelDirectory, read_model_directory
from mock_vllm.model.loader import ModelLoader
from mock_vllm.model.open_loader import OpenLoader
from mock_vllm.model.weights import WeightStore
from mock_vllm.profiles import Profile
from mock_vllm.receivers.none import NoReceiver
from mock_vllm.receivers.receiver import PlaneEvent, ReceiverFactory
from mock_vllm.receivers.tcp import TcpReceiver
from mock_vllm.settings import Settings

logger = logging.getLogger(__name__)

_WORTH_A_WARNING = frozenset({"join_failed", "mismatch", "timeout", "peer_gone", "aborted"})


@dataclass(frozen=True)
class MockEngine:
    """What the routes work on."""

    settings: Settings
    profile: Profile
    directory: ModelDirectory | None
    journal: Journal
    core: EngineCore
    generation: Generation

    @property
    def vocabulary(self) -> int:
        """Tokens that the model knows."""
        return _vocabulary(self.directory)

    @property
    def max_model_len(self) -> int:
        """Context length shown in `/v1/models`, in tokens."""
        of_model = None if self.directory is None else self.directory.max_model_len
        return self.settings.max_model_len or of_model or 2048


def build_engine(
    settings: Settings, profile: Profile | None = None, make_receiver: ReceiverFactory | None = None
) -> MockEngine:
    """Build the engine.

    Args:
        settings: what to serve.
        profile: another profile than the release's; tests bend single facts with it.
        make_receiver: another receiver than the settings ask for.

    Raises:
        SettingsError: the model directory cannot be read.
    """
    directory = read_model_directory(settings.model) if settings.is_directory else None
    chosen = profile or settings.profile
    journal = Journal()
    receiver = make_receiver or _receiver_factory(settings)

    def build_executor() -> Executor:
        workers = [_build_worker(rank, settings, chosen, directory, journal, receiver) for rank in _ranks(settings)]
        return InProcessExecutor(workers[0]) if settings.executor == "uni" else MultiprocExecutor(workers)

    core = EngineCore(build_executor)
    return MockEngine(settings, chosen, directory, journal, core, Generation(core, _vocabulary(directory)))


def _vocabulary(directory: ModelDirectory | None) -> int:
    known = None if directory is None else directory.vocabulary
    return known or DEFAULT_VOCABULARY


def _ranks(settings: Settings) -> range:
    return range(settings.world_size)


def _receiver_factory(settings: Settings) -> ReceiverFactory:
    if settings.receiver == "none":
        return NoReceiver
    return partial(TcpReceiver, timeout=settings.transfer_timeout, fail_on_mismatch=settings.on_mismatch == "fail")


def _build_worker(
    rank: int,
    settings: Settings,
    profile: Profile,
    directory: ModelDirectory | None,
    journal: Journal,
    make_receiver: ReceiverFactory,
) -> Worker:
    store = WeightStore({} if directory is None else directory.tensors)
    loader: ModelLoader
    if directory is None:
        loader = OpenLoader(store)
    else:
        loader = CheckedLoader(directory, store, profile.unknown_inside_is_error, profile.full_fused_layer)
    transfer = None
    if settings.weight_transfer:
        on_event = _event_recorder(rank, journal)
        transfer = TransferEngine(profile, rank, make_receiver, on_event, settings.keep == "bytes")
    return Worker(rank, profile, transfer, loader, store)


def _event_recorder(rank: int, journal: Journal) -> PlaneEvent:
    def record(event: str, detail: str) -> None:
        journal.plane_event(rank, event, detail)
        level = logging.WARNING if event in _WORTH_A_WARNING else logging.DEBUG
        logger.log(level, "rank %d: %s: %s", rank, event, detail)

    return record
