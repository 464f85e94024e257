"""Hands this machine's pip settings to a build that runs in another root filesystem.

``python3 scripts/pip_settings.py CONF`` writes the settings that pip uses here (its files and its PIP_* variables,
merged) to the file CONF, and prints one ``SOURCE:TARGET:ro`` a line for ``--volume``: CONF as /etc/pip.conf, and every
file or directory that a setting names, at the path that it has here. So a build finds the same index and trusts the
same certificates, and nothing of it is written into the image.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote, urlsplit

# Settings that say where pip on this machine works, not where packages come from.
_LOCAL = {"cache-dir", "log", "user", "prefix", "target", "root", "src", "require-virtualenv", "python"}


def effective_settings(listing: str) -> dict[str, str]:
    """The options of ``pip config list``, by name: variables win over files, ``[install]`` over ``[global]``."""
    ranked: dict[str, tuple[int, str]] = {}
    for line in listing.splitlines():
        key, equals, quoted = line.partition("=")
        section, dot, name = key.rpartition(".")
        if not equals or not dot or name in _LOCAL:
            continue
        rank = {"global": 0, "install": 1, ":env:": 2}.get(section, -1)
        if rank >= 0 and (name not in ranked or rank >= ranked[name][0]):
            ranked[name] = (rank, str(ast.literal_eval(quoted)))
    return {name: value for name, (_, value) in ranked.items()}


def local_paths(settings: dict[str, str]) -> list[Path]:
    """The absolute paths that exist here and that a setting names, plainly or as a file: URL.

    Of an index (``/mirror/simple``) it is the directory above: its links point there.
    """
    found: list[Path] = []
    for name, value in settings.items():
        for word in value.split():
            path = Path(unquote(urlsplit(word).path) if word.startswith("file:") else word)
            if name.endswith("index-url"):
                path = path.parent
            if path.is_absolute() and path != Path("/") and path.exists() and path not in found:
                found.append(path)
    return found


def main() -> int:
    """Returns 0, or 1 with one line on stderr when pip cannot be asked."""
    if len(sys.argv) != 2:
        sys.stderr.write("usage: pip_settings.py CONF\n")
        return 2
    command = [sys.executable, "-m", "pip", "config", "list"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        sys.stderr.write(f"pip does not tell its settings ({error}); install the package python3-pip\n")
        return 1
    settings = effective_settings(answer.stdout)
    conf = Path(sys.argv[1])
    conf.write_text(
        "[global]\n" + "".join(f"{name} = {' '.join(value.split())}\n" for name, value in settings.items()),
        encoding="utf-8",
    )
    mounts = [f"{conf.resolve()}:/etc/pip.conf:ro", *(f"{path}:{path}:ro" for path in local_paths(settings))]
    sys.stdout.write("".join(f"{mount}\n" for mount in mounts))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
