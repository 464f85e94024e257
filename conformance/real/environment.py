"""One release's private environment: where its parts lie and what is known of it."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conformance.real.errors import BadVersionError, NotInstalledError, RealServerError
from conformance.real.home import home, numbers, release
from conformance.real.lock import locked

PROVENANCE = "provenance.json"


@dataclass(frozen=True)
class Environment:
    """The folder ``HOME/VERSION`` with a virtual environment in it. May be unfinished; see `finished`."""

    version: str
    folder: Path

    @property
    def venv(self) -> Path:
        """The virtual environment."""
        return self.folder / "venv"

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.venv / "bin" / "python"

    @property
    def stamps(self) -> Path:
        """One file for each finished step of the installation."""
        return self.folder / "steps"

    @property
    def wheels(self) -> Path:
        """The wheel of vLLM that was downloaded, kept until the installation is finished."""
        return self.folder / "wheels"

    @property
    def install_log(self) -> Path:
        """What pip said."""
        return self.folder / "install.log"

    @property
    def serve_logs(self) -> Path:
        """The logs of servers, one file each."""
        return self.folder / "logs"

    @property
    def finished(self) -> bool:
        """Whether the installation came to its end."""
        return (self.folder / PROVENANCE).is_file() and self.python.exists()

    def provenance(self) -> dict[str, Any]:
        """What is installed and where it came from. Raises NotInstalledError, RealServerError."""
        if not self.finished:
            raise NotInstalledError(self.version, self.folder.parent)
        path = self.folder / PROVENANCE
        try:
            read = json.loads(path.read_text())
        except (OSError, ValueError) as error:
            raise RealServerError(f"{path} cannot be read ({error}); install {self.version} again") from error
        if not isinstance(read, dict):
            raise RealServerError(f"{path} holds no JSON object; install {self.version} again")
        return read

    def size(self) -> int:
        """Bytes on the disk."""
        return sum(file.lstat().st_size for file in self.folder.rglob("*") if not file.is_dir())


def environment(version: str) -> Environment:
    """The environment of ``version``, there or not. Raises BadVersionError."""
    exact = release(version)
    return Environment(exact, home() / exact)


def installed(version: str) -> Environment | None:
    """The environment of ``version`` when its installation is finished, else None. Raises BadVersionError."""
    found = environment(version)
    return found if found.finished else None


def environments() -> list[Environment]:
    """All environments, unfinished ones too, oldest release first."""
    found = []
    folder = home()
    for entry in folder.iterdir() if folder.is_dir() else ():
        try:
            if entry.is_dir() and release(entry.name) == entry.name:
                found.append(Environment(entry.name, entry))
        except BadVersionError:
            continue
    return sorted(found, key=lambda one: numbers(one.version))


def remove(version: str, deadline: float = 5.0) -> int:
    """Deletes the environment of ``version``, its logs too. Returns the bytes that it held.

    ``deadline``: seconds to wait for another process that is at it.

    Raises BadVersionError, NotInstalledError when nothing is there, BusyError while it is being installed,
    OSError when a file cannot be deleted.
    """
    found = environment(version)
    if not found.folder.is_dir():
        raise NotInstalledError(found.version, found.folder.parent)
    with locked(found.folder.parent, found.version, deadline):
        size = found.size()
        # First what says "finished": a removal that is cut short must not leave a half that looks whole.
        (found.folder / PROVENANCE).unlink(missing_ok=True)
        shutil.rmtree(found.folder)
    return size
