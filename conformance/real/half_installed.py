"""What a killed pip leaves behind, and would itself take for installed."""

from __future__ import annotations

import shutil
from pathlib import Path


def sweep(venv: Path) -> list[str]:
    """Removes what marks a package as installed when it was cut short: pip writes ``RECORD`` last. Returns the names.

    The files themselves are overwritten by the next installation. Raises OSError.
    """
    swept = []
    for site_packages in venv.glob("lib/python3*/site-packages"):
        for info in sorted(site_packages.glob("*.dist-info")):
            if not (info / "RECORD").is_file():
                shutil.rmtree(info)
                swept.append(info.name)
        # What pip had moved away in order to replace it.
        for moved in site_packages.glob("~*"):
            shutil.rmtree(moved) if moved.is_dir() else moved.unlink()
    return swept
