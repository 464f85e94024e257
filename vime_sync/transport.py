"""Bytes to an engine and back: the seam that tests replace, and the one that speaks HTTP."""

from __future__ import annotations

import io
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import requests
import urllib3
from requests.structures import CaseInsensitiveDict

from vime_sync._version import __version__
from vime_sync.addresses import parse_engine_url
from vime_sync.calls import Call
from vime_sync.connections import WatchedAdapter, current
from vime_sync.errors import CallTimeout, ConnectError, ConnectionClosed, MalformedAnswer, TransportError
from vime_sync.redaction import shortened
from vime_sync.timeouts import Timeouts
from vime_sync.watchdog import Watchdog

ANSWER_LIMIT = 1 << 20
# uvicorn, which vLLM runs on, closes a connection that was idle for 5 s, and a POST that meets that moment must not be
# repeated: rather than race it, a connection idle for longer than this is not used again.
IDLE_SECONDS = 3.0
_STEP = 1 << 16


@dataclass(frozen=True, slots=True)
class Response:
    """An answer as it came. `headers` ignores case. `body` is whole and not decoded."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=CaseInsensitiveDict)


class Transport(Protocol):
    """How EngineClient reaches an engine.

    `engine` is the base URL as it may be shown: without credentials.
    """

    engine: str

    def request(
        self,
        call: Call,
        method: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        total: float | None = None,
        limit: int = ANSWER_LIMIT,
        on_sent: Callable[[], None] | None = None,
    ) -> Response:
        """One call of `call.route`. Any status is an answer; raises TransportError when there is none.

        body     sent as JSON when not None
        total    seconds for the whole call; the transport's own deadline when None
        limit    bytes of answer at most
        on_sent  called once, when the last byte of the request has been handed to the socket
        """
        ...

    def abort(self) -> None:
        """Ends every call under way, from any thread; each raises ConnectionClosed."""
        ...

    def close(self) -> None:
        """Lets the connections go."""
        ...


class _Body(io.BytesIO):
    """A request's body that knows when it is out: http.client asks for more only after it sent what it had."""

    def __init__(self, content: bytes, on_sent: Callable[[], None] | None) -> None:
        super().__init__(content)
        self._on_sent = on_sent

    def read(self, size: int | None = -1, /) -> bytes:
        block = super().read(size)
        if not block and self._on_sent is not None:
            self._on_sent()
            self._on_sent = None
        return block


class HttpTransport:
    """One `requests.Session` to one engine.

    The environment's proxies are ignored, redirects are not followed, no request is ever repeated, and a connection is
    not used again after a 500: vLLM closes it then without saying so (all releases; uvicorn does after an exception).

    Raises SettingError for a URL that is not a base URL.
    """

    def __init__(self, url: str, timeouts: Timeouts | None = None) -> None:
        address = parse_engine_url(url)
        self.engine = address.base
        self.timeouts = timeouts or Timeouts.resolve()
        self._adapter = WatchedAdapter(max_retries=0)
        self._session = requests.Session()
        self._session.trust_env = False
        self._session.auth = address.credentials
        self._session.mount("http://", self._adapter)
        self._session.mount("https://", self._adapter)
        self._session.headers.update(
            {"User-Agent": f"vime-sync/{__version__}", "Accept": "application/json", "Accept-Encoding": "identity"}
        )
        self._used = time.monotonic()
        self._under_way: set[Watchdog] = set()
        self._lock = threading.Lock()

    def request(
        self,
        call: Call,
        method: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        total: float | None = None,
        limit: int = ANSWER_LIMIT,
        on_sent: Callable[[], None] | None = None,
    ) -> Response:
        """See Transport."""
        call = call.on(self.engine)
        seconds = total if total is not None else self.timeouts.total
        if time.monotonic() - self._used > IDLE_SECONDS:
            self._adapter.drop_idle()
        watchdog = Watchdog(seconds)
        with self._lock:
            self._under_way.add(watchdog)
        current.watchdog = watchdog
        try:
            with watchdog:
                response = self._exchange(call, method, query, body, seconds, limit, on_sent)
            if watchdog.expired or watchdog.cancelled:
                # http.client takes a head that ends with its connection for a whole one.
                raise requests.ConnectionError("the socket was shut")
            return response
        except (requests.RequestException, urllib3.exceptions.HTTPError, OSError, MalformedAnswer) as error:
            self._adapter.drop_idle()
            told = self._translated(call, error, watchdog, seconds)
            raise told from (error if told is not error else None)
        finally:
            current.watchdog = None
            with self._lock:
                self._under_way.discard(watchdog)
            self._used = time.monotonic()

    def abort(self) -> None:
        """See Transport."""
        with self._lock:
            under_way = list(self._under_way)
        for watchdog in under_way:
            watchdog.cancel()

    def close(self) -> None:
        """See Transport."""
        self.abort()
        self._session.close()

    def _exchange(
        self,
        call: Call,
        method: str,
        query: Mapping[str, str] | None,
        body: bytes | None,
        seconds: float,
        limit: int,
        on_sent: Callable[[], None] | None,
    ) -> Response:
        answer = self._session.request(
            method,
            self.engine + call.route,
            params=query,
            data=_Body(body, on_sent) if body is not None else None,
            headers={"Content-Type": "application/json"} if body is not None else None,
            timeout=(min(self.timeouts.connect, seconds), min(self.timeouts.read, seconds)),
            allow_redirects=False,
            stream=True,
        )
        try:
            content = self._content(call, answer, limit)
        finally:
            answer.close()
        if answer.status_code == 500:
            self._adapter.drop_idle()
        return Response(answer.status_code, content, answer.headers)

    @staticmethod
    def _content(call: Call, answer: requests.Response, limit: int) -> bytes:
        """The body, read piece by piece so that no answer can fill the memory.

        Success must say where it ends: a head that was cut off looks like an empty answer without a length.
        """
        if answer.ok and not ({"content-length", "transfer-encoding"} & {name.lower() for name in answer.headers}):
            raise MalformedAnswer(call, "an answer without a length, as a cut one is", status=answer.status_code)
        pieces = bytearray()
        while piece := answer.raw.read(_STEP, decode_content=False):
            pieces += piece
            if len(pieces) > limit:
                raise MalformedAnswer(
                    call, f"an answer of more than {limit} bytes", status=answer.status_code, body=bytes(pieces)
                )
        return bytes(pieces)

    def _translated(self, call: Call, error: Exception, watchdog: Watchdog, seconds: float) -> TransportError:
        """What `requests` and urllib3 raised, as one of ours. The watchdog knows best: it made the socket end."""
        if watchdog.expired:
            return CallTimeout(call, f"no whole answer within {seconds:g} s", seconds=seconds)
        if watchdog.cancelled:
            return ConnectionClosed(call, "the call was given up by this side")
        if isinstance(error, TransportError):
            return error
        reasons = _reasons(error)
        if any(
            isinstance(reason, (urllib3.exceptions.NewConnectionError, requests.ConnectTimeout)) for reason in reasons
        ):
            cause = reasons[-1]
            advice = "check that the engine runs there and the URL is right"
            return ConnectError(call, f"cannot connect ({shortened(str(cause), 200)})", next_step=advice)
        if any(isinstance(reason, (requests.Timeout, urllib3.exceptions.TimeoutError)) for reason in reasons):
            read = min(self.timeouts.read, seconds)
            return CallTimeout(call, f"nothing came for {read:g} s", seconds=read)
        text = shortened(str(reasons[-1]) or type(reasons[-1]).__name__, 200)
        return ConnectionClosed(call, f"the connection ended before the answer was whole ({text})")


def _reasons(error: BaseException) -> list[BaseException]:
    """The chain behind an error, outermost first: causes, urllib3's `reason`, and errors wrapped as arguments."""
    chain: list[BaseException] = []
    following: BaseException | None = error
    while following is not None and following not in chain and len(chain) < 12:
        chain.append(following)
        inner = [getattr(following, "reason", None), *reversed(following.args), following.__cause__]
        following = next((item for item in inner if isinstance(item, BaseException)), None)
    return chain
