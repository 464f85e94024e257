"""The live state of one case: its connections, its trainer, its requests under way."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from conformance.http_driver import Address, Answer, Connection, NoAnswerError, StaleConnectionError
from conformance.normalise import normalise, normalise_text, without_endpoint, without_plane_message
from conformance.oracle import differences, not_in_use
from conformance.request_data import broadcasts_of, call_of, resolve
from conformance.steps import (
    Absent,
    AnswerOf,
    Begin,
    Broadcast,
    Call,
    Dies,
    Healthy,
    Holds,
    Init,
    LeaveGroup,
    Meet,
    ModelEquals,
    ReceivedEqualsSent,
    Step,
    StillPending,
    Tokens,
    Update,
)
from conformance.targets.base import Target, TargetError, ask
from conformance.tensor import Tensor
from conformance.tiny_model import tensors
from conformance.trainer_side import StepFailedError, TrainerSide

EXPECTED_CLOSE_SECONDS = 2.0
"""How long a close that the truth expects may take."""
HEALTH_SECONDS = 3.0
DEATH_POLL_SECONDS = 0.2
TOKENS_PROMPT = [7, 21, 42, 84, 168, 33]
TOKENS_COUNT = 8
AS_EXPECTED: dict[str, object] = {"received": "as expected"}

Outcome = dict[str, object]


@dataclass
class _Begun:
    number: int
    connection: Connection
    step: Call | Init | Update


class CaseRun:
    """``closes`` tells for which steps (by number) the truth expects the connection to end; ``close_seconds`` is how
    long any other close is waited for after each answer."""

    def __init__(self, target: Target, closes: Mapping[int, bool], close_seconds: float) -> None:
        self._target = target
        self._closes = closes
        self._close_seconds = close_seconds
        self._trainer = TrainerSide(target)
        self._main = Connection(target.address)
        self._begun: dict[str, _Begun] = {}
        self._last: dict[Connection, Outcome] = {}
        self._sent: dict[str, Tensor] = {}
        self._written: dict[str, str] = {}

    def close(self) -> None:
        """Leaves the groups first, so that a server which waits for the trainer is free again."""
        self._trainer.close()
        self._main.close()
        for begun in self._begun.values():
            begun.connection.close()

    def note_last_closes(self) -> None:
        """Finds closes that nobody expected after each connection's last answer: one more request is the quickest
        way, since it is either answered or finds the connection ended."""
        for connection, outcome in self._last.items():
            if outcome["closed"] is False:
                try:
                    connection.send("GET", "/version", {}, None, self._trainer.deadline())
                    connection.read(self._trainer.deadline())
                except StaleConnectionError:
                    outcome["closed"] = True
                except NoAnswerError:
                    continue  # the next case's reset says what is wrong

    def do(self, number: int, step: Step) -> Outcome | None:
        """Step ``number`` of the case; None where it brings no answer. Raises StepFailedError, TargetError."""
        match step:
            case Call() | Init() | Update():
                return self._exchange(number, step)
            case Begin(label, inner):
                begun = self._begun[label] = _Begun(number, Connection(self._target.address), inner)
                self._send(begun.connection, inner)
                return None
            case AnswerOf(label, wording):
                begun = self._begun[label]
                return self._answer(number, begun.connection, begun.step, wording)
            case StillPending(labels, seconds):
                return self._still_pending(labels, time.monotonic() + seconds * self._target.patience)
            case Meet():
                self._trainer.meet(None)
                return None
            case Broadcast(data, only):
                self._trainer.broadcast(data, only)
                return None
            case LeaveGroup(reason):
                self._trainer.leave(reason)
                return None
            case Healthy():
                return {"health": ask(self._target.address, "GET", "/health", HEALTH_SECONDS).status}
            case ReceivedEqualsSent():
                return self._compare(list(self._sent.values()), exactly=True)
            case Holds(expected):
                return self._compare(expected, exactly=False)
            case ModelEquals(checkpoint):
                return self._compare(tensors(checkpoint), exactly=False, in_use=True)
            case Tokens(label):
                return self._tokens(label)
            case Dies(seconds):
                return self._dies(time.monotonic() + seconds)

    def _exchange(self, number: int, step: Call | Init | Update) -> Outcome:
        wording = not isinstance(step, Init | Update) or step.wording
        try:
            self._send(self._main, step)
            return self._answer(number, self._main, step, wording)
        except StaleConnectionError:
            # The answer before this one ended the connection; this request was never read, so it is sent once more.
            self._last[self._main]["closed"] = True
            self._main.close()
        self._send(self._main, step)
        return self._answer(number, self._main, step, wording)

    def _send(self, connection: Connection, step: Call | Init | Update) -> None:
        if isinstance(step, Init):
            self._trainer.listen()
        call = call_of(step)
        body = call.raw
        if body is None and call.json is not Absent.BODY:
            body = json.dumps(resolve(call.json, self._trainer.known())).encode()
        headers = {"Accept": "*/*"}
        if body is not None and call.content_type is not None:
            headers["Content-Type"] = call.content_type
        if body is None and call.method == "POST":
            body = b""
        try:
            connection.send(call.method, call.path, headers, body, self._trainer.deadline())
        except NoAnswerError as error:
            raise StepFailedError(str(error)) from error
        if isinstance(step, Init) and step.meets:
            self._trainer.meet(connection.socket)
        elif isinstance(step, Update):
            for data in broadcasts_of(step):
                self._trainer.broadcast(data)

    def _answer(self, number: int, connection: Connection, step: Call | Init | Update, wording: bool) -> Outcome:
        try:
            answer = connection.read(self._trainer.deadline(), head=isinstance(step, Call) and step.method == "HEAD")
        except NoAnswerError as error:
            raise StepFailedError(str(error)) from error
        outcome = outcome_of(answer, wording, self._target.address)
        seconds = EXPECTED_CLOSE_SECONDS if self._closes.get(number) else self._close_seconds
        outcome["closed"] = connection.closed_within(seconds)
        self._last[connection] = outcome
        if isinstance(step, Update) and answer.status == 200:
            self._sent.update({tensor.name: tensor for tensor in step.tensors})
        return outcome

    def _still_pending(self, labels: Sequence[str], until: float) -> Outcome:
        answered = [
            label for label in labels if not self._begun[label].connection.silent_for(max(until - time.monotonic(), 0))
        ]
        return {"answered early": answered} if answered else {"pending": True}

    def _tokens(self, label: str) -> Outcome:
        body = {"model": self._target.model_id, "prompt": TOKENS_PROMPT, "max_tokens": TOKENS_COUNT, "temperature": 0}
        reply = ask(self._target.address, "POST", "/v1/completions", self._target.deadline_seconds, body)
        try:
            text = str(reply.body["choices"][0]["text"])
        except (LookupError, TypeError):
            raise StepFailedError(f"no completion: {reply.status} {reply.body}") from None
        like = [earlier for earlier, written in self._written.items() if written == text]
        self._written[label] = text
        return {"status": reply.status, "like": like}

    def _dies(self, until: float) -> Outcome:
        while time.monotonic() < until:
            try:
                ask(self._target.address, "GET", "/health", HEALTH_SECONDS)
            except TargetError:
                return {"process": "ended"}
            time.sleep(DEATH_POLL_SECONDS)
        return {"process": "still answers"}

    def _compare(self, expected: Sequence[Tensor], exactly: bool, in_use: bool = False) -> Outcome:
        received = self._target.received()
        found = differences(expected, received, exactly) + (not_in_use(expected, received) if in_use else [])
        return {"received": found} if found else dict(AS_EXPECTED)


def outcome_of(answer: Answer, wording: bool, address: Address) -> Outcome:
    """A response as it stands in a truth file, but for ``closed``: volatile parts named, JSON parsed, else text.

    ``address`` is where the server was asked, which its answers may repeat.
    """
    content_type = answer.headers.get("content-type")
    outcome: Outcome = {"status": answer.status, "content_type": content_type}
    if "allow" in answer.headers:
        outcome["allow"] = answer.headers["allow"]
    if "location" in answer.headers:
        outcome["location"] = normalise_text(without_endpoint(answer.headers["location"], address.host, address.port))
    text = without_endpoint(answer.body.decode("utf-8", errors="replace"), address.host, address.port)
    try:
        body = json.loads(text) if content_type and "json" in content_type else text
    except ValueError:
        body = text
    named = normalise(body)
    outcome["body"] = named if wording else without_plane_message(named)
    return outcome
