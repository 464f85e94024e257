"""A session and a group on a scripted engine, ready for one bucket."""

from __future__ import annotations

from collections.abc import Callable

from tests.support.arrays import Array
from tests.support.scripted_engine import Handler, ScriptedEngine
from vime_sync.bucket_push import push_bucket
from vime_sync.buckets import plan
from vime_sync.engine import EngineClient
from vime_sync.releases import release_of
from vime_sync.rendezvous import form_group
from vime_sync.session import WeightUpdateSession
from vime_sync.tcp_plane_listener import TcpPlaneListener
from vime_sync.tcp_plane_sender import TcpPlaneSender
from vime_sync.timeouts import Timeouts

UPDATE = "/update_weights"


class Pushing:
    """`handler` answers `/update_weights`. `push` may be called once; `group_was_closed` says what it left."""

    def __init__(self, handler: Handler | None = None, *, total: float = 20.0, world_size: int = 1) -> None:
        self.engine = ScriptedEngine(world_size=world_size)
        self.client = EngineClient("http://unused", Timeouts(total=total, grace=0.5), self.engine)
        listener = TcpPlaneListener(world_size + 1, "127.0.0.1")
        self.group: TcpPlaneSender = form_group(self.client, listener, "127.0.0.1")
        self.session = WeightUpdateSession(self.client, world_size=world_size)
        self.session.start()
        if handler is not None:
            self.engine.handlers[UPDATE] = handler

    def push(
        self, tensors: list[Array], *, packed: bool = False, on_bytes: Callable[[int], None] | None = None
    ) -> None:
        (bucket,) = plan(tensors, release_of("0.21.0"), packed=packed)
        try:
            push_bucket(self.session, self.group, bucket, on_bytes=on_bytes or (lambda _: None))
        finally:
            self.group_was_closed = self.group.closed
            self.group.close()
            self.engine.leave()
