"""One bucket: its POST goes out, then its broadcasts, and the engine's word is watched all the while."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from vime_sync.background import ended, in_background, until
from vime_sync.buckets import Bucket
from vime_sync.errors import Abandoned, CallTimeout, EarlyAnswer, PeerGone, Stalled, TransferError
from vime_sync.session import WeightUpdateSession
from vime_sync.tcp_plane_sender import TcpPlaneSender
from vime_sync.tensors import TensorSource, read_checked


def push_bucket(
    session: WeightUpdateSession,
    group: TcpPlaneSender,
    bucket: Bucket,
    *,
    on_bytes: Callable[[int], None] = lambda _: None,
    on_tensor: Callable[[TensorSource, memoryview], None] = lambda _tensor, _view: None,
) -> None:
    """Announces and sends one bucket; returns when the engine has received and loaded it.

    on_bytes   told how many more bytes were handed over
    on_tensor  told every tensor and its bytes, before they are sent

    The announcement must be out first: an engine that refuses it receives nothing, and a broadcast without a receiver
    never ends on NCCL.

    Raises what the engine answered, at once; Stalled when bytes are left at the deadline; CallTimeout when all were
    handed over and no answer came; EarlyAnswer; PeerGone; Mismatch. Every error names the bucket. The group is closed
    then, since a receiver may hold a frame that the engine refused.
    """
    try:
        if group.closed:
            raise Abandoned("the group is closed and cannot be used again")
        _Exchange(session, group, bucket).run(on_bytes, on_tensor)
    except BaseException as error:
        group.close()
        if isinstance(error, TransferError):
            error.bucket = bucket.index
        raise


class _Exchange:
    def __init__(self, session: WeightUpdateSession, group: TcpPlaneSender, bucket: Bucket) -> None:
        self._session = session
        self._group = group
        self._bucket = bucket
        self._handed = 0
        self._timeouts = session.client.timeouts
        self._deadline = time.monotonic() + self._timeouts.total
        self._sent = threading.Event()
        info = bucket.update_info()
        self._call = in_background(
            lambda: session.update(info, bucket=bucket.index, on_sent=self._sent.set), self._on_answer
        )

    def run(self, on_bytes: Callable[[int], None], on_tensor: Callable[[TensorSource, memoryview], None]) -> None:
        try:
            self._sent.wait(until(self._deadline) + self._timeouts.grace)
            self._broadcast(on_bytes, on_tensor)
            self._group.watch(self._deadline, self._call.done)
            self._call.result()
        except Abandoned:
            raise self._answered_too_soon() from None
        except PeerGone as gone:
            # The engine knows better why its worker left, unless it went with it.
            if not ended(self._call, self._timeouts.grace):
                self._give_up()
                raise
            error = self._call.exception()
            if error is not None:
                error.add_note(str(gone))
                raise error from gone
            if self._handed < self._bucket.nbytes:
                raise
        except BaseException:
            # The receivers see the end of the group, and the engine answers; unless it answered already.
            self._group.close()
            self._give_up()
            raise

    def _on_answer(self) -> None:
        self._sent.set()
        self._group.wake()

    def _broadcast(
        self, on_bytes: Callable[[int], None], on_tensor: Callable[[TensorSource, memoryview], None]
    ) -> None:
        def count(more: int) -> None:
            self._handed += more
            on_bytes(more)

        for tensors in self._bucket.broadcasts:
            if self._call.done():
                raise Abandoned("answered before everything was sent")
            views = []
            for tensor in tensors:
                views.append(read_checked(tensor))
                on_tensor(tensor, views[-1])
            self._group.broadcast(views, self._deadline, self._call.done, count)

    def _answered_too_soon(self) -> BaseException:
        """What to raise when the engine's call ended while bytes were left."""
        error = self._call.exception()
        total = self._bucket.nbytes
        if error is None:
            return EarlyAnswer(f"the engine announced success when {self._handed} of {total} bytes were handed over")
        if isinstance(error, CallTimeout):
            message = f"the receivers took {self._handed} of {total} bytes before the deadline of {error.seconds:g} s"
            return Stalled(message, sent=self._handed, total=total)
        return error

    def _give_up(self) -> None:
        if not ended(self._call, self._timeouts.grace):
            self._session.client.abort()
            ended(self._call, self._timeouts.grace)
