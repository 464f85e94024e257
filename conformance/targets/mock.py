"""A mock: one that runs already, or one started here that serves the tiny model."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any

from conformance import tiny_model
from conformance.case import USUAL, Launch, Need
from conformance.http_driver import Address
from conformance.targets.base import HttpTarget, ReceivedTensor, TargetError, TargetKind, ask
from conformance.tiny_model.architecture import parameter_shapes

HEADER = "x-mock-vllm"
DEFAULT_URL = "http://127.0.0.1:8000"
PLANE_SECONDS = 30.0
"""How long a mock started here waits for a trainer: longer than any step's deadline, so that only steps decide."""


def is_mock(address: Address, seconds: float = 2.0) -> bool:
    """Whether a mock answers there. Raises TargetError when nobody does."""
    return HEADER in ask(address, "GET", "/health", seconds).headers


@contextmanager
def started_mock(release: str, launch: Launch = USUAL) -> Iterator[str]:
    """Serves checkpoint A of the tiny model on a free port as ``release`` does, yields the URL, and stops.

    Raises TargetError when the mock cannot be that release.
    """
    from mock_vllm import MockServer, Settings, SettingsError

    with tempfile.TemporaryDirectory(prefix="conformance-tiny-model-") as directory:
        tiny_model.write(directory, "A")
        try:
            settings = Settings(
                model=directory,
                vllm_version=release,
                port=0,
                receiver="tcp",
                transfer_timeout=PLANE_SECONDS,
                dev_mode=launch.dev_mode,
                weight_transfer=launch.weight_transfer,
            )
        except SettingsError as error:
            raise TargetError(f"no mock of vLLM {release}: {error}") from error
        with MockServer(settings) as server:
            yield str(server.url)


@contextmanager
def _read(path: str) -> Iterator[None]:
    try:
        yield
    except (LookupError, TypeError, AttributeError) as error:
        raise TargetError(f"{path} is not of the documented form: {type(error).__name__}: {error}") from error


class MockTarget(HttpTarget):
    """A mock, with the routes of its own under ``/mock`` (docs/mock-routes.md)."""

    kind: TargetKind = "mock"
    patience = 0.2

    def _mock(self, method: str, path: str) -> Any:
        reply = self.ask(method, path)
        if reply.status != 200 or not isinstance(reply.body, dict):
            raise TargetError(f"{method} {self.base_url}{path} answered {reply.status}: not this project's mock?")
        return reply.body

    @cached_property
    def _state(self) -> tuple[str, bool, bool]:
        """Receiver, whether a directory is served, whether it is the tiny model: asked once, after a reset."""
        self.reset()
        state = self._mock("GET", "/mock/state")
        weights = self._mock("GET", "/mock/weights")
        with _read("/mock/state or /mock/weights"):
            shapes = {name: tuple(entry["shape"]) for name, entry in weights["ranks"][0]["weights"].items()}
            return str(state["receiver"]), bool(state["model_checked"]), shapes == parameter_shapes()

    def offers(self, need: Need) -> str | None:
        """None when the mock has what a case needs, else the reason. Raises TargetError."""
        if need == "completions":
            return self.lacks_completions
        receiver, checked, tiny = self._state
        if need in ("data plane", "digests") and receiver != "tcp":
            return f"the mock's receiver is {receiver!r}, tcp is needed"
        if need == "checked model" and not checked:
            return "the mock serves a bare model name and accepts any tensor"
        if need in ("checked model", "tiny model") and checked and not tiny:
            return "the mock serves another model than the suite's tiny one"
        return None

    def reset(self) -> None:
        """``POST /mock/reset``. Raises TargetError."""
        self._mock("POST", "/mock/reset")

    def received(self) -> list[dict[str, ReceivedTensor]]:
        """What ``/mock/weights`` lists as received, per rank. Raises TargetError."""
        answer = self._mock("GET", "/mock/weights")
        with _read("/mock/weights"):
            return [
                {
                    name: ReceivedTensor(
                        entry["dtype"],
                        tuple(entry["shape"]),
                        entry["nbytes"],
                        entry["received_sha256"],
                        entry["sha256"],
                        entry["live"],
                    )
                    for name, entry in rank["weights"].items()
                    if entry["received_sha256"] is not None
                }
                for rank in answer["ranks"]
            ]

    def group_is_made(self) -> None:
        """Nothing to remember: a reset leaves the group."""
