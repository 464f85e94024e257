"""`mock-vllm serve MODEL`: the command line, which also takes the flags of `vllm serve`."""

from __future__ import annotations

import argparse
import difflib
import json
import logging
import os
import signal
import sys
import threading
from collections.abc import Sequence
from types import FrameType

from mock_vllm._version import __version__
from mock_vllm.errors import SettingsError
from mock_vllm.profiles import DEFAULT_RELEASE, RELEASES
from mock_vllm.server import MockServer
from mock_vllm.settings import EXECUTORS, KEEP, ON_MISMATCH, RECEIVERS, Settings

EXIT_OK = 0
EXIT_ENGINE_DIED = 1
EXIT_USAGE = 2

_OWN_OPTIONS = (
    "--vllm-version",
    "--receiver",
    "--transfer-timeout",
    "--on-mismatch",
    "--keep",
    "--strict-launch",
    "--stay-when-dead",
    "--quiet",
    "--host",
    "--port",
)
"""A mistyped one of these must not be taken for a flag of vLLM's and ignored."""

_EPILOG = """\
Other flags of `vllm serve` are accepted and ignored with a warning, so that a launcher of vLLM can run this instead.

Exit codes: 0 stopped by SIGINT or SIGTERM; 1 the engine died; 2 the server cannot be started as asked.

Look inside a running mock at /mock/state, /mock/weights and /mock/journal.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command. Returns the exit code."""
    parser = _parser()
    options, unknown = parser.parse_known_args(arguments)
    logging.basicConfig(
        level=logging.WARNING if options.quiet else logging.INFO, format="%(levelname)s %(message)s", stream=sys.stderr
    )
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    if unknown and (slip := _slip(unknown)):
        print(f"mock-vllm: {slip[0]}: no such option; did you mean {slip[1]}?", file=sys.stderr)
        return EXIT_USAGE
    if unknown:
        logging.warning("ignored, the mock has no use for: %s", " ".join(unknown))
    try:
        server = MockServer(_settings(options))
    except SettingsError as error:
        print(f"mock-vllm: {error}", file=sys.stderr)
        return EXIT_USAGE
    return _serve(server)


def _serve(server: MockServer) -> int:
    stopping = threading.Event()

    def stop(_signal: int, _frame: FrameType | None) -> None:
        stopping.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    settings = server.settings
    with server:
        checked = "names and shapes are checked" if settings.is_directory else "a bare name: any tensor is accepted"
        everywhere = f" (listening on {settings.host})" if settings.host in ("0.0.0.0", "::") else ""
        logging.info("a mock of vLLM %s (not vLLM) at %s%s", settings.vllm_version, server.url, everywhere)
        logging.info("serves %s (%s), receives over %s", settings.model, checked, settings.receiver)
        if not settings.dev_mode:
            logging.warning("VLLM_SERVER_DEV_MODE is off: the weight-transfer routes answer 404, as vLLM's do")
        while not stopping.wait(0.1):
            if server.ended:
                return EXIT_ENGINE_DIED
    return EXIT_OK


def _slip(unknown: Sequence[str]) -> tuple[str, str] | None:
    """Return an unknown flag that looks like one of the mock's own, mistyped, and that one."""
    for flag in (text.partition("=")[0] for text in unknown if text.startswith("--")):
        for own in difflib.get_close_matches(flag, _OWN_OPTIONS, n=1, cutoff=0.85):
            return flag, own
    return None


def _settings(options: argparse.Namespace) -> Settings:
    model = options.model_tag or options.model
    if options.model_tag and options.model and options.model_tag != options.model:
        raise SettingsError("--model", f"{options.model} is not MODEL, {options.model_tag}; give one of the two")
    _check_json("--weight-transfer-config", options.weight_transfer_config)
    if not model:
        raise SettingsError("MODEL", "is missing; give a model directory, or any name")
    dev_mode = os.environ.get("VLLM_SERVER_DEV_MODE", "0" if options.strict_launch else "1")
    return Settings(
        model=model,
        vllm_version=options.vllm_version,
        host=options.host,
        port=options.port,
        receiver=options.receiver,
        transfer_timeout=options.transfer_timeout,
        on_mismatch=options.on_mismatch,
        keep=options.keep,
        tensor_parallel_size=options.tensor_parallel_size,
        pipeline_parallel_size=options.pipeline_parallel_size,
        data_parallel_size=options.data_parallel_size,
        executor=options.distributed_executor_backend,
        dev_mode=dev_mode not in ("0", ""),
        weight_transfer=options.weight_transfer_config is not None or not options.strict_launch,
        served_model_name=options.served_model_name,
        max_model_len=options.max_model_len,
        stay_when_dead=options.stay_when_dead,
    )


def _check_json(option: str, text: str | None) -> None:
    try:
        json.loads(text or "{}")
    except ValueError as error:
        raise SettingsError(option, f"is not JSON: {error}") from None


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="mock-vllm", description="A server that behaves as a vLLM release does on the weight-transfer routes."
    )
    parser.add_argument("--version", action="version", version=f"mock-vllm {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    serve = commands.add_parser(
        "serve",
        help="serve a mock until it is stopped",
        description="Serve a mock of a vLLM release until SIGINT or SIGTERM.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    serve.add_argument(
        "model_tag",
        nargs="?",
        metavar="MODEL",
        help="a model directory (names and shapes are checked), or any other name (any tensor is accepted)",
    )
    serve.add_argument("--model", help="the same as MODEL")
    _add_mock_options(serve)
    _add_vllm_options(serve)
    return parser


def _add_mock_options(serve: argparse.ArgumentParser) -> None:
    group = serve.add_argument_group("the mock")
    group.add_argument(
        "--vllm-version",
        default=DEFAULT_RELEASE,
        metavar="X",
        help=f"one of {', '.join(RELEASES)} (default %(default)s)",
    )
    group.add_argument(
        "--receiver",
        choices=RECEIVERS,
        default="tcp",
        help="tcp: the TCP plane; none: metadata only (default %(default)s)",
    )
    group.add_argument(
        "--transfer-timeout",
        type=float,
        default=300.0,
        metavar="S",
        help="seconds to wait for the trainer to join and for the next bytes of a broadcast (default %(default)g)",
    )
    group.add_argument(
        "--on-mismatch",
        choices=ON_MISMATCH,
        default="hang",
        help="when the byte counts of both sides differ: hang to the deadline as NCCL would, or fail at once",
    )
    group.add_argument("--keep", choices=KEEP, default="digests", help="what to keep of received tensors")
    group.add_argument(
        "--strict-launch",
        action="store_true",
        help="as vLLM: needs VLLM_SERVER_DEV_MODE=1 for these routes and --weight-transfer-config for a transfer",
    )
    group.add_argument(
        "--stay-when-dead", action="store_true", help="keep answering (503) after the engine died, for a look at /mock"
    )
    group.add_argument("--quiet", action="store_true", help="print warnings and errors only")


def _add_vllm_options(serve: argparse.ArgumentParser) -> None:
    group = serve.add_argument_group("as in vllm serve")
    group.add_argument("--host", default="127.0.0.1", help="address to listen on (default %(default)s)")
    group.add_argument(
        "--port", type=int, default=8000, help="port to listen on, 0 for a free one (default %(default)s)"
    )
    group.add_argument("--tensor-parallel-size", "-tp", type=int, default=1, metavar="N")
    group.add_argument("--pipeline-parallel-size", "-pp", type=int, default=1, metavar="N")
    group.add_argument("--data-parallel-size", "-dp", type=int, default=1, metavar="N")
    group.add_argument(
        "--distributed-executor-backend",
        choices=EXECUTORS,
        default="auto",
        help="wording of engine errors: uni as for one GPU, mp as for several and for CPU builds (auto: mp)",
    )
    group.add_argument("--weight-transfer-config", metavar="JSON", help='for example {"backend":"nccl"}')
    group.add_argument("--served-model-name", metavar="NAME")
    group.add_argument("--max-model-len", type=int, metavar="N")
