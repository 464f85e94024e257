"""`vime-sync`: push a checkpoint into a vLLM server, or say in which state a server is."""

from __future__ import annotations

import argparse
import json
import sys
import traceback
from collections.abc import Sequence

from vime_sync import exit_codes
from vime_sync._version import __version__
from vime_sync.buckets import DEFAULT_BUCKET_BYTES, DEFAULT_PACKED_BUFFER_BYTES
from vime_sync.commands import run_push, run_status
from vime_sync.errors import SettingError, SyncError
from vime_sync.outlet import Outlet
from vime_sync.redaction import shortened, without_credentials
from vime_sync.sizes import parse_bytes
from vime_sync.termination import Terminated, sigterm_interrupts
from vime_sync.timeouts import HTTP_TIMEOUT_VARIABLE, UPDATE_TIMEOUT_VARIABLE

STATUS_TIMEOUT = 10.0


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command and returns its exit status. Errors are one line on standard error, and never a traceback."""
    arguments = build_parser().parse_args(argv)
    out, err = Outlet(sys.stdout), Outlet(sys.stderr)
    try:
        with sigterm_interrupts():
            arguments.run(arguments, out, err)
        code = exit_codes.OK
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 (the outermost frame: everything becomes one line)
        code = _failed(error, arguments, out, err)
    out.flush()
    if code == exit_codes.OK and out.failed:
        code = _unheard(arguments, err)
    err.flush()
    return code


def _unheard(arguments: argparse.Namespace, err: Outlet) -> int:
    """The status of a command whose output went nowhere: a push has done its work, any other command has none."""
    pushed = arguments.run is run_push and not arguments.dry_run
    what = "warning: the push is done, but its report" if pushed else "error: the output"
    err.write(f"vime-sync: {what} cannot be written to standard output\n")
    return exit_codes.OK if pushed else exit_codes.UNEXPECTED


def build_parser() -> argparse.ArgumentParser:
    """The parser of the command line."""
    parser = argparse.ArgumentParser(
        prog="vime-sync",
        description="Push weights into a running vLLM server, and see what state it is in.",
        epilog=exit_codes.HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"vime-sync {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_push(commands)
    _add_status(commands)
    return parser


def _add_push(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = commands.add_parser(
        "push",
        help="push a safetensors checkpoint into an engine",
        description="Push a safetensors file, an index of shards, or a directory that holds either, into an engine.",
        epilog=exit_codes.HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.set_defaults(run=run_push)
    add = command.add_argument
    add("checkpoint", metavar="CHECKPOINT", help="model.safetensors, *.safetensors.index.json, or their directory")
    add("--engine", metavar="URL", help="base URL of the engine, such as http://127.0.0.1:8000")
    add(
        "--packed",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="send packed buffers, or each tensor by itself (default: packed, unless only plain carries everything)",
    )
    add("--bucket-bytes", type=_size, default=DEFAULT_BUCKET_BYTES, metavar="SIZE", help="default 256MiB")
    add("--packed-buffer-bytes", type=_size, default=DEFAULT_PACKED_BUFFER_BYTES, metavar="SIZE", help="default 1GiB")
    add("--master-address", metavar="ADDRESS", help="where the engine finds this machine (default: found by routing)")
    add("--master-port", type=int, default=0, metavar="PORT", help="port to listen on (default: a free one)")
    add("--bind-address", metavar="ADDRESS", help="where to listen (default: the master address; 0.0.0.0 for all)")
    add(
        "--timeout",
        type=float,
        metavar="SECONDS",
        help=f"deadline of each call (default: ${UPDATE_TIMEOUT_VARIABLE}, ${HTTP_TIMEOUT_VARIABLE}, 900)",
    )
    add("--pause-mode", choices=("keep", "abort", "wait"), default="keep", help="running requests (default: keep)")
    add("--no-resume", dest="resume", action="store_false", help="leave the engine paused at the end")
    add("--no-verify", dest="verify", action="store_false", help="do not compare digests")
    add("--weight-version", metavar="NAME", help="what the engine is to call the weights (vLLM 0.27 on)")
    add("--vllm-version", metavar="VERSION", help="go by this release, for development builds")
    add("--dry-run", action="store_true", help="print the plan; with --engine also check that it answers")
    add("--quiet", action="store_true", help="say nothing but errors")
    _add_common(command)


def _add_status(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = commands.add_parser(
        "status",
        help="say what an engine is and in which state",
        epilog=exit_codes.HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.set_defaults(run=run_status)
    command.add_argument("--engine", metavar="URL", required=True, help="base URL of the engine")
    command.add_argument(
        "--timeout", type=float, default=STATUS_TIMEOUT, metavar="SECONDS", help="deadline of each call (default: 10)"
    )
    _add_common(command)


def _add_common(command: argparse.ArgumentParser) -> None:
    command.add_argument("--json", action="store_true", help="print one JSON object, also for an error")
    command.add_argument("--traceback", action="store_true", help="print the traceback of an error too")


def _size(text: str) -> int:
    try:
        return parse_bytes(text)
    except SettingError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _failed(error: BaseException, arguments: argparse.Namespace, out: Outlet, err: Outlet) -> int:
    code = exit_codes.exit_code(error)
    if arguments.traceback:
        traceback.print_exception(error, file=err)
    notes = [shortened(note) for note in getattr(error, "__notes__", [])]
    if isinstance(error, SyncError):
        what = error.line()
    elif isinstance(error, Terminated):
        what = "terminated (SIGTERM)"
    elif isinstance(error, KeyboardInterrupt):
        what = "interrupted"
    else:
        what = f"unexpected {type(error).__name__}: {shortened(str(error))} (--traceback shows where)"
    line = without_credentials("; ".join([what, *notes]))
    err.write(f"vime-sync: error: {line}\n")
    if arguments.json:
        found = {
            "schema": "vime-sync/error/1",
            "error": type(error).__name__,
            "message": without_credentials(str(error)),
            "state": getattr(error, "state", None),
            "next_step": getattr(error, "next_step", None),
            "notes": notes,
            "exit_code": code,
        }
        out.write(json.dumps(found, indent=2, ensure_ascii=False) + "\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
