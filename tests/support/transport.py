"""One call of the client's transport against a raw server, for the tests of the transport."""

from __future__ import annotations

import socket

from tests.support.raw_server import RawServer, answer
from vime_sync.calls import Call
from vime_sync.timeouts import Timeouts
from vime_sync.transport import HttpTransport, Response

UPDATE = Call("/update_weights", "", "update", 2)
OK = answer(b'{"message":"Weights updated"}')


def patient() -> Timeouts:
    """Return limits so long that a busy machine makes no difference: nothing waits for a deadline."""
    return Timeouts(connect=30.0, read=60.0, total=60.0, quick=60.0, grace=1.0)


def post(server: RawServer, limits: Timeouts | None = None, body: bytes = b"{}") -> Response:
    """Post once over a transport of its own."""
    transport = HttpTransport(server.url, limits or patient())
    try:
        return transport.request(UPDATE, "POST", body=body)
    finally:
        transport.close()


def well(sock: socket.socket, server: RawServer) -> None:
    """Answer every request well."""
    while server.receive(sock):
        sock.sendall(OK)
