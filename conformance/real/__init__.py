"""Real vLLM servers on a CPU, in private environments: installed, started, ended (docs/real-servers.md)."""

from conformance.real.environment import Environment, environments, installed, remove
from conformance.real.errors import RealServerError
from conformance.real.installing import install
from conformance.real.launch import serving
from conformance.real.options import Options
from conformance.real.server import RunningServer

__all__ = [
    "Environment",
    "Options",
    "RealServerError",
    "RunningServer",
    "environments",
    "install",
    "installed",
    "remove",
    "serving",
]
