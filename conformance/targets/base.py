"""The server under test, as the runner sees it."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Protocol

from conformance.case import USUAL, Launch, Need
from conformance.http_driver import Address, Connection, NoAnswerError, StaleConnectionError

TargetKind = Literal["mock", "real"]


class TargetError(RuntimeError):
    """The target is not there, or cannot be brought into its first state."""


@dataclass(frozen=True)
class ReceivedTensor:
    """What a server says of the last tensor that it received under a name.

    ``held_sha256`` (of what the model holds now, which may be an earlier tensor) and ``live`` (whether that is in use)
    are None where a server does not tell.
    """

    dtype: str
    shape: tuple[int, ...]
    nbytes: int
    sha256: str
    held_sha256: str | None = None
    live: bool | None = None


class Target(Protocol):
    """A server under test.

    ``deadline_seconds`` bounds every single step, ``patience`` scales how long a request must stay unanswered.
    ``trainer_address`` is the address of this machine that the server can reach, ``launch`` how the server was started
    as far as that is known, ``expendable`` whether a case may spoil it.
    """

    kind: TargetKind
    base_url: str
    address: Address
    deadline_seconds: float
    patience: float
    trainer_address: str
    launch: Launch
    expendable: bool

    @property
    def release(self) -> str:
        """The vLLM release, as ``/version`` says."""

    @property
    def world_size(self) -> int:
        """Workers of the server, all of them."""

    @property
    def model_id(self) -> str:
        """The served model's id."""

    def offers(self, need: Need) -> str | None:
        """None when the target has what a case needs, else the reason why it has not."""

    def reset(self) -> None:
        """Brings the server to no session, not paused, nothing received. Raises TargetError."""

    def received(self) -> list[dict[str, ReceivedTensor]]:
        """Per worker, the tensors received since ``reset``, the last one of each name. Raises TargetError."""

    def group_is_made(self) -> None:
        """Told by the runner when an init was accepted."""


@dataclass(frozen=True)
class Reply:
    """Status, headers and parsed JSON (None when it is not JSON) of a question outside any case."""

    status: int
    headers: dict[str, str]
    body: Any


def ask(address: Address, method: str, path: str, seconds: float, body: object = None) -> Reply:
    """One request on a connection of its own. Raises TargetError when there is no answer within ``seconds``."""
    deadline = time.monotonic() + seconds
    connection = Connection(address)
    data = None if body is None else json.dumps(body).encode()
    headers = {} if data is None else {"Content-Type": "application/json"}
    try:
        connection.send(method, path, headers, data, deadline)
        answer = connection.read(deadline)
    except (NoAnswerError, StaleConnectionError) as error:
        raise TargetError(f"{method} http://{address.host}:{address.port}{path}: {error}") from error
    finally:
        connection.close()
    try:
        parsed = json.loads(answer.body)
    except ValueError:
        parsed = None
    return Reply(answer.status, answer.headers, parsed)


class HttpTarget:
    """What every target answers in the same way."""

    deadline_seconds = 5.0

    def __init__(
        self,
        base_url: str,
        trainer_address: str = "127.0.0.1",
        launch: Launch = USUAL,
        expendable: bool = False,
    ) -> None:
        self.base_url = base_url.rstrip("/")
        self.address = Address.of(base_url)
        self.trainer_address = trainer_address
        self.launch = launch
        self.expendable = expendable

    def ask(self, method: str, path: str, body: object = None) -> Reply:
        """One request within the target's deadline. Raises TargetError."""
        return ask(self.address, method, path, self.deadline_seconds, body)

    def _fact(self, path: str, key: str) -> Any:
        reply = self.ask("GET", path)
        if not isinstance(reply.body, dict) or key not in reply.body:
            raise TargetError(f"GET {self.base_url}{path} answered {reply.status} without {key!r}: not a vLLM server?")
        return reply.body[key]

    @cached_property
    def release(self) -> str:
        """The vLLM release, as ``/version`` says. Raises TargetError."""
        return str(self._fact("/version", "version"))

    @cached_property
    def world_size(self) -> int:
        """Workers of the server, data-parallel ones included. Raises TargetError."""
        if not self.launch.dev_mode:
            return 1  # a server without the route that tells was started here, with one worker
        try:
            return int(self._fact("/get_world_size", "world_size"))
        except TargetError as error:
            hint = "was the server started with VLLM_SERVER_DEV_MODE=1?"
            raise TargetError(f"{error} ({hint})") from error

    @cached_property
    def model_id(self) -> str:
        """The first served model's id. Raises TargetError."""
        models = self._fact("/v1/models", "data")
        return str(models[0]["id"])

    @cached_property
    def lacks_completions(self) -> str | None:
        """Why the server cannot complete a prompt; None when it can. Raises TargetError."""
        known = self.ask("GET", "/v1/completions").status == 405
        return None if known else "the server has no /v1/completions"
