"""The engine core: one thread that takes one call at a time.

While a call waits for the trainer, every other call that needs the engine waits behind it, as in vLLM 0.21.0
(`vllm.v1.engine.core.EngineCoreProc`).
"""

from __future__ import annotations

import concurrent.futures
import queue
import threading
from collections.abc import Callable
from typing import Any

from mock_vllm.engine.executor import Executor
from mock_vllm.errors import EngineCallError, EngineDeadError, WorkerError

PAUSE_MODES = ("abort", "wait", "keep")
DEFAULT_WEIGHT_VERSION = "default"
SLEEPING_TAGS = frozenset({"weights", "kv_cache"})

_Job = tuple[str, Callable[[], Any], "concurrent.futures.Future[Any]"]


def _nothing() -> None:
    return


class EngineCore:
    """The queue, the executor behind it, and the scheduler's pause flag.

    Args:
        build_executor: makes the workers anew; called at the start and at every reset.
    """

    def __init__(self, build_executor: Callable[[], Executor]) -> None:
        self._build_executor = build_executor
        self.executor = build_executor()
        self.paused = False
        self.dead = False
        self.on_death: Callable[[], None] = _nothing
        self.sleeping: frozenset[str] = frozenset()
        self.weight_version = DEFAULT_WEIGHT_VERSION
        self.busy: str | None = None
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._abandoning = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="mock-engine-core", daemon=True)
        self._thread.start()

    @property
    def queued(self) -> int:
        """Calls that wait for the one under way."""
        return self._jobs.qsize()

    def compute(self) -> None:
        """Run the model; with layers that wait for their weights, that is the end of the engine.

        Raises:
            EngineDeadError: the engine died of it, or had died before.
        """
        if not self.dead and not all(worker.whole for worker in self.executor.workers):
            self.dead = True
            self.on_death()
        if self.dead:
            raise EngineDeadError

    def collective_rpc(self, method: str, *args: Any) -> concurrent.futures.Future[Any]:
        """Call a method on every worker, in turn with everything else.

        The future raises EngineCallError with the client's message.
        """
        return self._submit("collective_rpc", method, lambda: self.executor.collective_rpc(method, args))

    def compute_weight_checksums(self) -> concurrent.futures.Future[Any]:
        """Digest the parameters of every worker; returns a list, one mapping a worker."""
        return self._submit(
            "compute_weight_checksums",
            "compute_weight_checksums",
            lambda: self.executor.collective_rpc("compute_weight_checksums", ()),
        )

    def finish_weight_update(self, weight_version: str | None) -> concurrent.futures.Future[Any]:
        """Close the session on every worker, then set the label, if one was given."""
        return self._submit("collective_rpc", "finish_weight_update", lambda: self._finish(weight_version))

    def set_weight_version(self, weight_version: str) -> concurrent.futures.Future[Any]:
        """Set the label, without any check."""
        return self._submit("update_weight_version", "update_weight_version", lambda: self._label(weight_version))

    def get_weight_version(self) -> concurrent.futures.Future[Any]:
        """Ask for the label, in turn."""
        return self._submit("get_weight_version", "get_weight_version", lambda: self.weight_version)

    def pause(self) -> concurrent.futures.Future[Any]:
        """Stop scheduling new requests."""
        return self._submit("pause_scheduler", "pause", lambda: self._set_paused(True))

    def resume(self) -> concurrent.futures.Future[Any]:
        """Schedule again."""
        return self._submit("resume_scheduler", "resume", lambda: self._set_paused(False))

    def is_paused(self) -> concurrent.futures.Future[Any]:
        """Ask the scheduler, in turn."""
        return self._submit("is_scheduler_paused", "is_paused", lambda: self.paused)

    def reset_prefix_cache(self) -> concurrent.futures.Future[Any]:
        """Drop cached prefixes, in turn. The mock caches none."""
        return self._submit("reset_prefix_cache", "reset_prefix_cache", lambda: True)

    def sleep(self, level: int, mode: str) -> concurrent.futures.Future[Any]:
        """Pause, and from level 1 on give up weights and KV cache. The mock keeps the weights it shows."""
        return self._submit("sleep", "sleep", lambda: self._fall_asleep(level, mode))

    def wake_up(self, tags: list[str] | None) -> concurrent.futures.Future[Any]:
        """Take back what `tags` name, or everything; scheduling goes on in any case (up to 0.23)."""
        return self._submit("wake_up", "wake_up", lambda: self._awake(tags))

    def release_kv_cache(self) -> concurrent.futures.Future[Any]:
        """Give up the KV cache of a paused engine; the mock has none."""
        return self._submit("release_kv_cache_memory", "release_kv_cache_memory", lambda: None)

    def is_sleeping(self) -> concurrent.futures.Future[Any]:
        """True while merely paused, too."""
        return self._submit("is_sleeping", "is_sleeping", lambda: self.paused or bool(self.sleeping))

    def reset(self) -> concurrent.futures.Future[Any]:
        """Abandon what is under way and start over with fresh workers. Calls that were queued before end first."""
        self._abandoning.set()
        future = self._submit("reset", "reset", self._rebuild)
        self.executor.abandon()
        return future

    def shutdown(self) -> None:
        """Abandon what is under way and end the threads."""
        self._abandoning.set()
        self._jobs.put(None)
        self.executor.abandon()
        self._thread.join(timeout=5.0)
        self.executor.shutdown()

    def _submit(self, call: str, shown: str, run: Callable[[], Any]) -> concurrent.futures.Future[Any]:
        future: concurrent.futures.Future[Any] = concurrent.futures.Future()
        if self.dead and shown != "reset":
            future.set_exception(EngineDeadError())
            return future

        def job() -> Any:
            self.busy = shown
            try:
                return run()
            except (WorkerError, RecursionError) as error:
                raise EngineCallError(f"Call to {call} method failed: {error}") from error
            finally:
                self.busy = None

        self._jobs.put((shown, job, future))
        return future

    def _serve(self) -> None:
        while (entry := self._jobs.get()) is not None:
            shown, job, future = entry
            if self._abandoning.is_set() and shown != "reset":
                future.set_exception(EngineCallError(f"Call to {shown} was abandoned: the mock is being reset"))
                continue
            try:
                future.set_result(job())
            except Exception as error:  # noqa: BLE001 - the caller gets it
                future.set_exception(error)

    def _rebuild(self) -> None:
        self.executor.shutdown()
        self.executor = self._build_executor()
        self.paused = False
        self.dead = False
        self.sleeping = frozenset()
        self.weight_version = DEFAULT_WEIGHT_VERSION
        self._abandoning.clear()

    def _finish(self, weight_version: str | None) -> None:
        self.executor.collective_rpc("finish_weight_update", ())
        if weight_version is not None:
            self.weight_version = weight_version

    def _label(self, weight_version: str) -> None:
        self.weight_version = weight_version

    def _fall_asleep(self, level: int, mode: str) -> None:
        if mode not in PAUSE_MODES:
            raise WorkerError(f"Invalid pause mode: {mode}")
        self.paused = True
        if level >= 1:
            self.sleeping = SLEEPING_TAGS

    def _awake(self, tags: list[str] | None) -> None:
        self.sleeping = frozenset() if tags is None else self.sleeping - set(tags)
        self.paused = False

    def _set_paused(self, paused: bool) -> None:
        self.paused = paused
