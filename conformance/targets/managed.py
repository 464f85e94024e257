"""A real server that this suite starts, in the private environment of its release."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from conformance import tiny_model
from conformance.case import Launch
from conformance.real import RealServerError, installed, serving
from conformance.real.environment import Environment
from conformance.targets.base import Target, TargetError
from conformance.targets.url import RealTarget

START_SECONDS = 300.0
PLANE_SECONDS = "60"
"""How long a worker waits for its trainer; longer than any step, so that only steps decide."""


class _GivenUpError(RuntimeError):
    """The run ended while a server was starting."""


def environment_of(release: str) -> Environment:
    """The release's environment. Raises TargetError, which says how to install it."""
    try:
        found = installed(release)
    except RealServerError as error:
        raise TargetError(str(error)) from error
    if found is None:
        raise TargetError(f"vLLM {release} is not installed here: python -m conformance.real install {release}")
    return found


def provenance_of(environment: Environment) -> dict[str, object]:
    """What a truth recorded from this environment says of it. Raises RealServerError."""
    known = environment.provenance()
    kept = ("source", "wheel", "differs_from_official", "platform", "machine", "python", "versions", "plugin")
    return {
        **{key: known[key] for key in kept if key in known},
        # vLLM's CPU builds put even one worker into a process of its own.
        "executor": "multiprocess, one worker",
        "model": "tiny model, checkpoint A, float32",
    }


def starter(environment: Environment) -> Callable[[Launch, threading.Event], AbstractContextManager[Target]]:
    """What a pool starts servers with."""

    @contextmanager
    def start(launch: Launch, stop: threading.Event) -> Iterator[Target]:
        def waiting(_seconds: float) -> None:
            if stop.is_set():
                raise _GivenUpError

        # The later flag wins, and vLLM reads None as no config.
        flags = () if launch.weight_transfer else ("--weight-transfer-config", "None")
        env = {"WEIGHT_PLANE_TIMEOUT": PLANE_SECONDS, "VLLM_SERVER_DEV_MODE": "1" if launch.dev_mode else "0"}
        with tempfile.TemporaryDirectory(prefix="conformance-") as folder:
            model = Path(folder) / "tiny"
            tiny_model.write(model, "A")
            try:
                with serving(
                    environment, model=model, flags=flags, env=env, deadline=START_SECONDS, waiting=waiting
                ) as server:
                    yield RealTarget(server.url, launch=launch, expendable=True)
            except (RealServerError, OSError, _GivenUpError) as error:
                raise TargetError(f"no vLLM {environment.version} started {launch}: {error}") from error

    return start
