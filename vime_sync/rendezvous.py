"""Forming the group: the engine is told where to meet while the trainer waits there."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from vime_sync.addresses import bracketed
from vime_sync.background import ended, in_background, until
from vime_sync.engine import EngineClient
from vime_sync.errors import Abandoned, CallTimeout, NeverJoined, PeerGone, Refused
from vime_sync.tcp_plane_listener import TcpPlaneListener
from vime_sync.tcp_plane_sender import TcpPlaneSender

# An engine that can reach the trainer joins at once; minutes may pass until the deadline.
HINT_SECONDS = 5.0


def form_group(
    client: EngineClient,
    listener: TcpPlaneListener,
    master_address: str,
    *,
    packing: Mapping[str, Any] | None = None,
    note: Callable[[str], None] = lambda _: None,
) -> TcpPlaneSender:
    """The group of the trainer, rank 0, and all workers of one engine, from rank 1 on.

    packing  what init announces of packing, see `Release.init_packing`
    note     told a sentence when no rank has joined some seconds after the engine was asked to

    The engine's call and the accept run at once, since neither ends before the other: the engine answers when every
    rank has been accepted. The total deadline bounds both.

    Raises what the engine answered when it refused, and at once; NeverJoined when ranks are missing at the deadline, or
    when the engine announced success without them; TransportError; PeerGone. The listener is closed in any case.
    """
    timeouts = client.timeouts
    deadline = time.monotonic() + timeouts.total
    init_info = {
        "master_address": master_address,
        "master_port": listener.port,
        "rank_offset": 1,
        "world_size": listener.world_size,
        **(packing or {}),
    }

    def hint() -> None:
        place = f"{bracketed(master_address)}:{listener.port}"
        note(f"no rank has joined yet at {place}; can the engine reach it? see --master-address")

    sent = threading.Event()

    def answered() -> None:
        sent.set()
        listener.wake()

    call = in_background(lambda: client.init_weight_transfer_engine(init_info, on_sent=sent.set), answered)
    group: TcpPlaneSender | None = None
    try:
        sent.wait(until(deadline))  # nobody can join before; whoever is quick waits in the listener's queue
        group = listener.accept(deadline, call.done, hint_at=time.monotonic() + HINT_SECONDS, hint=hint)
        call.result()
    except Abandoned:
        error = call.exception()
        if error is None:
            raise listener.never_joined("the engine announced success, but not every rank had joined") from None
        if isinstance(error, CallTimeout):  # the same deadline, seen by the other thread first
            raise listener.never_joined("not every rank joined before the deadline") from error
        raise error from None
    except NeverJoined:
        client.abort()
        raise
    except PeerGone as gone:
        # Its engine says why, unless it died.
        if ended(call, timeouts.grace) and isinstance(error := call.exception(), Refused):
            error.add_note(str(gone))
            raise error from gone
        client.abort()
        raise
    except BaseException:
        listener.close()
        if group is not None:
            group.close()
        if not call.done():
            client.abort()
        raise
    return group
