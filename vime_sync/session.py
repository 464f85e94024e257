"""A weight update session on one engine: opened, fed, and closed whatever happens between."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from types import TracebackType
from typing import Any

from vime_sync.engine import EngineClient
from vime_sync.errors import ConnectError, Refused, SyncError, TransportError


class SessionState(Enum):
    """What is known of the session, and so of the model.

    The model is whole, and may be resumed into, in NOT_OPENED (old weights) and FINISHED (new weights) only.
    """

    NOT_OPENED = "not opened"
    OPEN = "open"
    FINISHED = "finished: the new weights are live"
    FAILED = "an update failed in the workers: left open up to vLLM 0.22, closed without data in the model from 0.23 on"
    CLOSED_EARLY = "closed after a failure: the model may mix old and new weights"
    OUT_OF_STEP = "the workers' answers are out of step with the calls"
    UNKNOWN = "unknown"


class WeightUpdateSession:
    """Context manager over `/start_weight_update` and `/finish_weight_update`.

        with WeightUpdateSession(client) as session:
            session.update(info, bucket=0)

    Leaving normally finishes the session, and an error of the finish is raised. Leaving with an error closes what was
    opened, as far as the engine still answers, and lets that error through; what the closing met is attached as a note.
    It never resumes generation.

    client      the engine
    world_size  its workers. With more than one, a failed call leaves answers of the other ranks queued (all releases,
                vLLM `v1.executor.multiproc_executor.collective_rpc`), so that later answers would be lies: nothing more
                is asked of it, and it must be restarted.
    is_checkpoint_format  false for kernel format, up to vLLM 0.24; None for checkpoint format, on every release
    weight_version        what the finish calls the weights, from vLLM 0.27 on
    """

    def __init__(
        self,
        client: EngineClient,
        *,
        world_size: int = 1,
        is_checkpoint_format: bool | None = None,
        weight_version: str | None = None,
    ) -> None:
        self.client = client
        self.world_size = world_size
        self.weight_version = weight_version
        self.state = SessionState.NOT_OPENED
        self._is_checkpoint_format = is_checkpoint_format

    def __enter__(self) -> WeightUpdateSession:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.finish()
        else:
            for note in self.clean_up():
                error.add_note(note)

    def start(self) -> None:
        """Opens the session. Raises CallError; the session counts as not opened only if the engine said so.

        Asks for the release before, unless the client knows it: what is to be done after a failure hangs on it. Raises
        UnsupportedRelease.
        """
        release = self.client.release
        if self.weight_version is not None:
            release.check_weight_version(self.weight_version)
        try:
            self.client.start_weight_update(is_checkpoint_format=self._is_checkpoint_format)
        except Refused as refused:
            if refused.status >= 500 and self.world_size > 1:
                self.state = SessionState.OUT_OF_STEP
            raise
        except ConnectError:
            raise
        except (TransportError, KeyboardInterrupt):
            self.state = SessionState.UNKNOWN
            raise
        self.state = SessionState.OPEN

    def update(
        self, update_info: Mapping[str, Any], *, bucket: int | None = None, on_sent: Callable[[], None] | None = None
    ) -> None:
        """Announces one bucket; blocks until the engine has received and loaded it. Raises CallError."""
        try:
            self.client.update_weights(update_info, bucket=bucket, on_sent=on_sent)
        except Refused as refused:
            # What the HTTP layer refuses (below 500) no worker has seen: the session stays open on every release.
            if refused.status >= 500:
                self.state = SessionState.OUT_OF_STEP if self.world_size > 1 else SessionState.FAILED
            raise
        except ConnectError:
            raise  # the engine has not seen the call: the session is as it was
        except BaseException:
            self.state = SessionState.UNKNOWN
            raise

    def finish(self) -> None:
        """Closes the session: the weights go live. Raises CallError; what the engine holds is unknown then."""
        self.state = SessionState.UNKNOWN
        self.client.finish_weight_update(weight_version=self.weight_version)
        self.state = SessionState.FINISHED

    def clean_up(self) -> list[str]:
        """Closes the session after a failure, within the grace time. Returns what it met, in sentences.

        An open session is finished. Where the failed update has closed it (vLLM 0.23 on), a finish would be refused; a
        start and a finish put the parameters back, without which the next request kills the engine, and the next update
        would go on from what the failed one left in half-loaded layers, and answer 200.
        """
        if self.state not in (SessionState.OPEN, SessionState.FAILED):
            return []
        grace = self.client.timeouts.grace
        closed = self.state is SessionState.FAILED and self.client.release.failed_update_closes
        self.state = SessionState.UNKNOWN
        try:
            if closed:
                self.client.start_weight_update(is_checkpoint_format=self._is_checkpoint_format, total=grace)
            self.client.finish_weight_update(total=grace)
        except SyncError as second:
            return [f"closing the session failed too: {second}"]
        self.state = SessionState.CLOSED_EARLY
        return []
