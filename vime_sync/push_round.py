"""The calls of one push, in the order that is safe on every release, and how far they have come."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vime_sync.aftermath import Reached, explain
from vime_sync.bucket_push import push_bucket
from vime_sync.buckets import Bucket
from vime_sync.digests import SentDigests, Verification, compare
from vime_sync.engine import EngineClient, PauseMode
from vime_sync.errors import WeightVersionMismatch
from vime_sync.progress import Progress
from vime_sync.releases import Release
from vime_sync.rendezvous import form_group
from vime_sync.session import WeightUpdateSession
from vime_sync.tcp_plane_listener import TcpPlaneListener
from vime_sync.tcp_plane_sender import TcpPlaneSender
from vime_sync.tensors import TensorSource
from vime_sync.wording import counted, some


@dataclass(frozen=True, slots=True)
class RoundOptions:
    """How a round is run; the fields are those of `push`, with the addresses chosen.

    packing  what init announces of packing, see `Release.init_packing`
    """

    pause_mode: PauseMode
    resume: bool
    verify: bool
    master_address: str
    master_port: int
    bind_address: str
    packing: Mapping[str, Any]
    weight_version: str | None


class PushRound:
    """One round on one engine: `probe`, then `run`; `explain` on any failure of either."""

    def __init__(self, client: EngineClient, progress: Progress) -> None:
        self._client = client
        self._progress = progress
        self._paused = self._confirmed = False
        self._init_sent = False
        self._session: WeightUpdateSession | None = None
        self._release: Release | None = None
        self._whole = False
        self.world_size = 0
        self.seconds: dict[str, float] = {}
        self.warnings: list[str] = []

    def probe(self) -> str:
        """The version that the engine states; its release and world size are known then. Changes nothing.

        Raises CallError, UnsupportedRelease.
        """
        client = self._client
        with self._timed("version"):
            version = client.version()
            self._release = client.release
            if self._release.warning:
                self.warnings.append(self._release.warning)
        with self._timed("world size"):
            self.world_size = client.world_size()
        return version

    def run(self, buckets: Sequence[Bucket], options: RoundOptions) -> Verification:
        """Sends the buckets and makes them live. Raises SyncError."""
        client = self._client
        with contextlib.ExitStack() as stack:
            # Listening changes nothing and may fail, so it comes before the pause.
            listener = TcpPlaneListener(self.world_size + 1, options.bind_address, options.master_port)
            stack.enter_context(listener)
            # Hashing takes longer than sending, and only a mock shows what to compare with.
            digests = SentDigests() if options.verify and client.mock_version is not None else None
            if digests is not None:
                stack.callback(digests.close)
            with self._timed("pause"):
                self._paused = True
                client.pause(options.pause_mode)
                self._confirmed = True
            with self._timed("flush"):
                if client.reset_prefix_cache() is False:
                    self.warnings.append("the engine says that its prefix cache was not emptied")
            with self._timed("init"):
                self._init_sent = True
                group = stack.enter_context(self._form_group(listener, options))
            version = options.weight_version
            self._session = WeightUpdateSession(client, world_size=self.world_size, weight_version=version)
            opened = stack.enter_context(contextlib.ExitStack())
            with self._timed("start"):
                opened.enter_context(self._session)
            with self._timed("update"):
                self._send(self._session, group, buckets, digests)
            with self._timed("finish"):
                opened.close()
            with self._timed("verify"):
                verification = self._verify(digests, options.verify)
                if version is not None and (found := client.weight_version()) != version:
                    raise WeightVersionMismatch(version, found)
        self._whole = True
        if options.resume:
            with self._timed("resume"):
                client.resume()
        return verification

    def explain(self, error: BaseException) -> None:
        """Writes into the error what the engine was left in and what to do next."""
        reached = Reached(
            paused=self._paused,
            confirmed=self._confirmed,
            init_sent=self._init_sent,
            session=self._session.state if self._session is not None else None,
            whole=self._whole,
            release=self._release,
            world_size=self.world_size,
        )
        explain(error, reached)

    def _form_group(self, listener: TcpPlaneListener, options: RoundOptions) -> TcpPlaneSender:
        address, packing = options.master_address, options.packing
        return form_group(self._client, listener, address, packing=packing, note=self._progress.note)

    def _send(
        self,
        session: WeightUpdateSession,
        group: TcpPlaneSender,
        buckets: Sequence[Bucket],
        digests: SentDigests | None,
    ) -> None:
        def digest(tensor: TensorSource, view: memoryview) -> None:
            if digests is not None:
                digests.add(tensor, view)

        self._progress.begin(sum(bucket.nbytes for bucket in buckets), len(buckets))
        for bucket in buckets:
            self._progress.bucket(bucket.index)
            push_bucket(session, group, bucket, on_bytes=self._progress.advance, on_tensor=digest)
            if digests is not None:
                digests.end_bucket()

    def _verify(self, digests: SentDigests | None, wanted: bool) -> Verification:
        if not wanted:
            return Verification(None, "sent, not verified: verification is switched off")
        if digests is None:
            return compare({}, None)
        digests.settle()
        verification = compare(digests.sent, self._client.mock_weights())
        if verification.ignored:
            what = counted(len(verification.ignored), "tensor")
            self.warnings.append(f"{what} arrived that the model does not know: {some(verification.ignored)}")
        return verification

    @contextlib.contextmanager
    def _timed(self, phase: str) -> Iterator[None]:
        began = time.monotonic()
        try:
            yield
        finally:
            self.seconds[phase] = time.monotonic() - began
