"""A mock server in a thread of this process, for tests and notebooks; the command line uses it, too."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import threading
from dataclasses import replace
from types import TracebackType

import uvicorn
from starlette.requests import ClientDisconnect

from mock_vllm.app import MockApp, create_app
from mock_vllm.errors import ImitatedError, SettingsError
from mock_vllm.settings import Settings

logger = logging.getLogger(__name__)

_START_SECONDS = 10.0
_STOP_SECONDS = 5.0
_DEATH_SECONDS = 0.5
_TICK_SECONDS = 0.1
"""uvicorn's own: it renews the date header and looks at its limits this often."""


class MockServer:
    """Serves one mock until `stop`.

        with MockServer(Settings(model="tiny", port=0)) as server:
            requests.get(f"{server.url}/health")

    Args:
        settings: what to serve; port 0 takes a free one, which `settings.port` and `url` then show.
        app: another application than `create_app(settings)`; the server closes it either way.

    Raises:
        SettingsError: the address cannot be bound, or the model cannot be read.
    """

    def __init__(self, settings: Settings, app: MockApp | None = None) -> None:
        self._socket = _bind(settings)
        self.settings = replace(settings, port=self._socket.getsockname()[1])
        try:
            self.app = app if app is not None else create_app(self.settings)
        except SettingsError:
            self._socket.close()
            raise
        config = uvicorn.Config(
            self.app,
            lifespan="off",
            access_log=False,
            log_config=None,
            timeout_graceful_shutdown=1,
        )
        self._server = _ThreadedServer(config)
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"sockets": [self._socket]}, name="mock-vllm", daemon=True
        )
        if not self.settings.stay_when_dead:
            self.app.engine.core.on_death = self._end_soon
        _quiet_imitated_errors()

    @property
    def url(self) -> str:
        """Base URL of the server."""
        return self.settings.url

    def start(self) -> MockServer:
        """Return once the server answers.

        Raises:
            RuntimeError: it did not come up within ten seconds.
        """
        self._thread.start()
        if not self._server.ready.wait(_START_SECONDS):
            self.stop()
            raise RuntimeError(f"the mock did not come up within {_START_SECONDS:g} s")
        return self

    def stop(self) -> None:
        """Abandon what the engine is doing, close every connection, and return once the thread has ended."""
        self.app.close()
        self._server.stop()
        if self._thread.is_alive():
            self._thread.join(_STOP_SECONDS)
        self._socket.close()

    @property
    def ended(self) -> bool:
        """The server has ended by itself: its engine died."""
        return self._thread.ident is not None and not self._thread.is_alive()

    def _end_soon(self) -> None:
        """End the server as vLLM does: the request is answered, `/health` says 503 for a moment, nobody listens."""
        logger.error("the engine died: a model without weights was asked to compute; the server ends")
        timer = threading.Timer(_DEATH_SECONDS, self._server.stop)
        timer.daemon = True
        timer.start()

    def __enter__(self) -> MockServer:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()


class _ThreadedServer(uvicorn.Server):
    """uvicorn that says when it is ready, and ends at once when told to instead of at its next tick."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._wake = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._loop = asyncio.get_running_loop()
        if self.started:
            self.ready.set()

    async def main_loop(self) -> None:
        counter = 0
        while not await self.on_tick(counter):
            counter = (counter + 1) % 864_000
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), _TICK_SECONDS)

    def stop(self) -> None:
        """End the loop, from another thread."""
        self.should_exit = True
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._wake.set)


def _bind(settings: Settings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    # The protocol is named because asyncio switches Nagle's algorithm off only for sockets that name it: without it,
    # every answer on a kept connection waits 40 ms for the client's acknowledgement.
    sock = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((settings.host, settings.port))
    except (OSError, UnicodeError) as error:
        sock.close()
        raise SettingsError("--port", f"cannot listen on {settings.host}:{settings.port}: {error}") from error
    return sock


class _NotImitated(logging.Filter):
    """Drops uvicorn's traceback of a failure that the real server shows, too; bugs of the mock stay visible."""

    def filter(self, record: logging.LogRecord) -> bool:
        if record.exc_info is None or isinstance(record.exc_info, bool):
            return True
        error = record.exc_info[1] if isinstance(record.exc_info, tuple) else record.exc_info
        return not isinstance(error, ImitatedError | UnicodeError | RecursionError | ClientDisconnect)


_FILTER = _NotImitated()


def _quiet_imitated_errors() -> None:
    logging.getLogger("uvicorn.error").addFilter(_FILTER)
