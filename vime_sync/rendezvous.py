"""Forming the group: the engine is told where to meet while the trainer waits there."""

from __future__ import annotations

import time

from vime_sync.background import ended, in_background
from vime_sync.engine import EngineClient
from vime_sync.errors import Abandoned, CallTimeout, NeverJoined, PeerGone, Refused
from vime_sync.tcp_plane_listener import TcpPlaneListener
from vime_sync.tcp_plane_sender import TcpPlaneSender

NOT_REACHED = (
    "check that the engine can connect to the master address (--master-address; in a container, the host's address)"
)


def form_group(client: EngineClient, listener: TcpPlaneListener, master_address: str) -> TcpPlaneSender:
    """The group of the trainer, rank 0, and all workers of one engine, from rank 1 on.

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
    }
    call = in_background(lambda: client.init_weight_transfer_engine(init_info), listener.wake)
    group: TcpPlaneSender | None = None
    try:
        group = listener.accept(deadline, call.done)
        call.result()
    except Abandoned:
        error = call.exception()
        if error is None:
            raise listener.never_joined("the engine announced success, but not every rank had joined") from None
        if isinstance(error, CallTimeout):  # the same deadline, seen by the other thread first
            late = listener.never_joined("not every rank joined before the deadline")
            late.next_step = NOT_REACHED
            raise late from error
        raise error from None
    except NeverJoined as late:
        client.abort()
        late.next_step = NOT_REACHED
        raise
    except PeerGone as gone:
        # Its engine says why, unless it died.
        if ended(call, timeouts.grace) and isinstance(error := call.exception(), Refused):
            error.add_note(str(gone))
            raise error from gone
        client.abort()
        raise
    except BaseException:
        if group is not None:
            group.close()
        if not call.done():
            client.abort()
        raise
    return group
