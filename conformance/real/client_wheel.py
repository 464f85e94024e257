"""This project as a wheel, made of its own files as they lie: an installed copy has no sources to build from."""

from __future__ import annotations

import hashlib
import importlib.util
import zipfile
from collections.abc import Iterator
from pathlib import Path

NAME = "vllm-weight-sync-conformance"
PACKAGES = ("mock_vllm", "conformance", "vime_sync")
_FILE_NAME = "vllm_weight_sync_conformance-0-py3-none-any.whl"


def _files() -> Iterator[tuple[str, Path]]:
    """Each file of the packages, by its name in the wheel."""
    for package in PACKAGES:
        spec = importlib.util.find_spec(package)
        if spec is None or spec.origin is None:
            continue
        folder = Path(spec.origin).parent
        for path in sorted(folder.rglob("*")):
            if path.is_file() and path.suffix != ".pyc":
                yield f"{package}/{path.relative_to(folder).as_posix()}", path


def digest_of(files: Iterator[tuple[str, Path]]) -> str:
    """Hex digest of names and contents."""
    total = hashlib.sha256()
    for name, path in files:
        total.update(f"{name}\0{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return total.hexdigest()


def client_digest() -> str:
    """What changes when a file of the project does."""
    return digest_of(_files())


def make_client_wheel(folder: Path) -> Path:
    """Writes the wheel into ``folder`` and returns its path. Raises OSError."""
    path = folder / _FILE_NAME
    info = "vllm_weight_sync_conformance-0.dist-info"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        names = []
        for name, file in _files():
            archive.write(file, name)
            names.append(name)
        texts = {
            f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {NAME}\nVersion: 0\n",
            f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        }
        record = "".join(f"{name},,\n" for name in (*names, *texts, f"{info}/RECORD"))
        for name, text in {**texts, f"{info}/RECORD": record}.items():
            archive.writestr(name, text)
    return path
