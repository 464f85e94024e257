"""How a real vLLM is started on a CPU with a real weight transfer."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from conformance.real.environment import Environment
from conformance.real.errors import NotInstalledError
from conformance.real.server import RunningServer, running

ENVIRONMENT = {
    # The routes under test exist in dev mode only.
    "VLLM_SERVER_DEV_MODE": "1",
    # GiB. The tiny model needs a few MB; the default takes a large part of the machine's memory.
    "VLLM_CPU_KVCACHE_SPACE": "1",
    # Pinning threads to cores makes two servers on one machine fight over the same ones.
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    # Of all plugins that lie in the environment, this one.
    "VLLM_PLUGINS": "weight_plane",
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
}
_DROPPED = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")


def command(environment: Environment, model: Path, port: int, flags: Sequence[str]) -> list[str]:
    """The server's command line. ``flags`` come last, so each of them overrules what is set here."""
    return [
        # Not the `vllm` script: it asks for the distribution `vllm`, which is named `vllm-cpu` here.
        *(str(environment.python), "-m", "vllm.entrypoints.openai.api_server"),
        *("--host", "127.0.0.1", "--port", str(port)),
        *("--model", str(model), "--served-model-name", model.name),
        *("--dtype", "float32", "--max-model-len", "256", "--enforce-eager"),
        *("--weight-transfer-config", '{"backend":"nccl"}'),
        *("--worker-extension-cls", "weight_plane.extension.ReceivedWeights"),
        *flags,
    ]


def server_environment(extra: Mapping[str, str], base: Mapping[str, str] = os.environ) -> dict[str, str]:
    """A server's environment variables: the caller's without what leads to other Pythons, ours, ``extra``."""
    kept = {name: value for name, value in base.items() if name not in _DROPPED}
    return {**kept, **ENVIRONMENT, **extra}


def free_port() -> int:
    """A TCP port of 127.0.0.1 that nobody uses at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def serving(
    environment: Environment,
    *,
    model: Path,
    flags: Sequence[str] = (),
    env: Mapping[str, str] = {},
    deadline: float = 300.0,
    port: int = 0,
    log: Path | None = None,
    waiting: Callable[[float], None] = lambda _seconds: None,
) -> Iterator[RunningServer]:
    """A real vLLM on 127.0.0.1 that serves ``model``, a directory, under the directory's name; ended on leaving.

    flags     more flags of ``vllm serve``; they overrule the ones set here
    env       more environment variables, such as ``WEIGHT_PLANE_TIMEOUT`` (seconds of one meeting or broadcast, 300)
    deadline  seconds until it must be healthy
    port      0 takes a free one
    log       where all its processes print; a new file in the environment's folder when None
    waiting   called several times a second while it starts, with the seconds so far

    Follows vLLM 0.21.0 to 0.32.0, ``vllm.entrypoints.openai.api_server``. Raises NotInstalledError, ServerDiedError,
    ServerDeadlineError, OSError.
    """
    if not environment.python.exists():
        raise NotInstalledError(environment.version, environment.folder.parent)
    port = port or free_port()
    log = log or environment.serve_logs / f"{time.strftime('%Y%m%d-%H%M%S')}-{port}.log"
    with running(
        command(environment, model, port, flags),
        f"http://127.0.0.1:{port}",
        log,
        env=server_environment(env),
        deadline=deadline,
        waiting=waiting,
    ) as server:
        yield server
