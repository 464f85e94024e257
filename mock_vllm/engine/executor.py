"""How a call reaches the workers and how their answers come back.

Two executors, as in vLLM 0.21.0: in process for one GPU (`vllm.v1.executor.uniproc_executor`), and one process a
rank otherwise (`vllm.v1.executor.multiproc_executor`; CPU builds use it even for one rank). The second reads replies
rank by rank and raises at the first failure, which leaves the replies of later ranks in their queues: from then on
they answer one call late.
"""

from __future__ import annotations

import logging
import pickle
import queue
import threading
from collections.abc import Callable
from typing import Any, Protocol

from mock_vllm.engine.worker import Worker
from mock_vllm.errors import WorkerError

logger = logging.getLogger(__name__)


class Executor(Protocol):
    """Reaches every worker."""

    workers: list[Worker]

    def collective_rpc(self, method: str, args: tuple[Any, ...]) -> list[Any]:
        """Call a method on every worker; returns one result a worker.

        Raises WorkerError with the text that the engine core sees.
        """

    def abandon(self) -> None:
        """Wake up workers that wait for the trainer, from another thread."""

    def shutdown(self) -> None:
        """End the workers; they were abandoned before if they were busy."""


class InProcessExecutor:
    """One worker, called directly."""

    def __init__(self, worker: Worker) -> None:
        self.workers = [worker]

    def collective_rpc(self, method: str, args: tuple[Any, ...]) -> list[Any]:
        return [getattr(self.workers[0], method)(*args)]

    def abandon(self) -> None:
        self.workers[0].abandon()

    def shutdown(self) -> None:
        self.workers[0].shutdown()


class MultiprocExecutor:
    """One thread a worker in the place of vLLM's processes, with a queue each way."""

    def __init__(self, workers: list[Worker]) -> None:
        self.workers = workers
        self._lanes = [_Lane(worker) for worker in workers]

    def collective_rpc(self, method: str, args: tuple[Any, ...]) -> list[Any]:
        # vLLM pickles a call on its way to the workers, which fails for what is nested too deeply.
        pickle.dumps(args)
        for lane in self._lanes:
            lane.requests.put((method, args))
        results = []
        for lane in self._lanes:
            failed, result = lane.replies.get()
            if failed:
                raise WorkerError(
                    f"Worker failed with error '{result}', please check the stack trace above for the root cause"
                )
            results.append(result)
        return results

    def abandon(self) -> None:
        for lane in self._lanes:
            lane.worker.abandon()

    def shutdown(self) -> None:
        for lane in self._lanes:
            lane.requests.put(None)
        for lane in self._lanes:
            lane.worker.abandon()
            lane.thread.join(timeout=5.0)
            lane.worker.shutdown()


class _Lane:
    """A worker with its thread and its two queues."""

    def __init__(self, worker: Worker) -> None:
        self.worker = worker
        self.requests: queue.SimpleQueue[tuple[str, tuple[Any, ...]] | None] = queue.SimpleQueue()
        self.replies: queue.SimpleQueue[tuple[bool, Any]] = queue.SimpleQueue()
        self.thread = threading.Thread(target=self._serve, name=f"mock-worker-{worker.rank}", daemon=True)
        self.thread.start()

    def _serve(self) -> None:
        while (request := self.requests.get()) is not None:
            method, args = request
            call: Callable[..., Any] = getattr(self.worker, method)
            try:
                result = call(*args)
            except WorkerError as error:
                self.replies.put((True, str(error)))
            except Exception as error:
                logger.exception("the mock itself failed in %s", method)
                self.replies.put((True, str(error)))
            else:
                self.replies.put((False, result))
