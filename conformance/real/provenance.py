"""Where an environment came from and what is in it."""

from __future__ import annotations

import json
import platform
import time
from typing import Any

from conformance.real.environment import PROVENANCE, Environment
from conformance.real.errors import StepError
from conformance.real.steps import Facts, Shell
from conformance.real.tail import last_lines

NAMED = ("torch", "fastapi", "starlette", "pydantic", "uvicorn", "transformers", "numpy")
"""Packages whose versions show in answers or in numbers, named one by one."""

_ENGINE_PROBE = """
import importlib.metadata as m, json, platform
import torch, vllm
from vllm.platforms import current_platform
print("PROBE " + json.dumps({
    "vllm": vllm.__version__, "torch": torch.__version__, "python": platform.python_version(),
    "cpu": current_platform.is_cpu(),
    "packages": {d.metadata["Name"].lower().replace("_", "-"): d.version for d in m.distributions()},
}))
"""
_PLUGIN_PROBE = """
import importlib.metadata as m, json
(point,) = m.entry_points(group="vllm.general_plugins", name="weight_plane")
point.load()()
from vllm.distributed.weight_transfer.nccl_engine import NCCLWeightTransferEngine as Engine
print("PROBE " + json.dumps({"in_place": Engine.uses_weight_plane}))
"""
_CLIENT_PROBE = """
import json
import conformance.plane, vime_sync
print("PROBE " + json.dumps({"client": vime_sync.__file__}))
"""


def probe_engine(target: Environment, shell: Shell) -> Facts:
    """Imports vLLM there; its version, torch's, python's, and all packages. Raises StepError."""
    seen = _probe(target, shell, "check", _ENGINE_PROBE)
    if str(seen["vllm"]).partition("+")[0] != target.version:
        raise StepError("check", f"vLLM {seen['vllm']} was installed, not {target.version}", shell.log, [])
    if not seen["cpu"]:
        raise StepError("check", "this vLLM is no CPU build", shell.log, last_lines(shell.log))
    return seen


def probe_plugin(target: Environment, shell: Shell) -> Facts:
    """Loads the plugin there as vLLM does. Raises StepError."""
    return _probe(target, shell, "plugin", _PLUGIN_PROBE)


def probe_client(target: Environment, shell: Shell) -> Facts:
    """Imports the trainer's side there. Raises StepError."""
    return _probe(target, shell, "client", _CLIENT_PROBE)


def _probe(target: Environment, shell: Shell, step: str, code: str) -> Facts:
    output = target.folder / "probe.txt"
    shell.run(step, [str(target.python), "-c", code], output)
    lines = last_lines(output, 200)
    found = [line.removeprefix("PROBE ") for line in lines if line.startswith("PROBE ")]
    if len(found) != 1:
        raise StepError(step, "the new environment's Python did not say what it is", output, lines[-12:])
    seen: Facts = json.loads(found[0])
    return seen


def gather(target: Environment, facts: dict[str, Facts]) -> dict[str, Any]:
    """The provenance, from what the steps found out (`docs/real-servers.md` names the fields)."""
    wheel, check, requirements = facts["wheel"], facts["check"], facts["requirements"]
    packages: dict[str, str] = check["packages"]
    return {
        "schema": 1,
        "release": target.version,
        "source": wheel["source"],
        "wheel": {
            "file": wheel["file"],
            "sha256": wheel["sha256"],
            "package": wheel["package"],
            "version": wheel["package_version"],
        },
        "differs_from_official": facts.get("official"),
        "versions": {name: packages.get(name) for name in NAMED} | {"torch": check["torch"]},
        "packages": packages,
        "pins": requirements["pins"],
        "pins_dropped": requirements["pins_dropped"],
        "python": check["python"],
        "platform": platform.platform(),
        "machine": platform.machine(),
        "plugin": facts["plugin"]["digest"],
        "client": facts["client"]["digest"],
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "bytes": target.size(),
    }


def write(target: Environment, document: dict[str, Any]) -> None:
    """Writes it whole or not at all: its presence says that the environment is finished. Raises OSError."""
    part = target.folder / f"{PROVENANCE}.part"
    part.write_text(json.dumps(document, indent=1))
    part.replace(target.folder / PROVENANCE)
