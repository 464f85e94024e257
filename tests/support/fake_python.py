"""Stands in for the Python of a managed environment while it is built: makes folders, installs nothing, keeps a list.

Environment: ``FAKE_CALLS`` is the file that lists what was asked of pip; ``FAKE_WHEEL`` is what a download gives;
``FAKE_FAIL=WORD:TEXT`` makes each pip call with that word print the text and fail; ``FAKE_HANG=WORD`` makes it leave a
half-installed package and its process id (in ``FAKE_CALLS.pid``), and then take ten minutes.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from pathlib import Path

CALLS = Path(os.environ["FAKE_CALLS"])


def make_venv(folder: Path) -> None:
    """As ``python -m venv --clear``."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "bin").mkdir(parents=True)
    (folder / "lib" / "python3.11" / "site-packages").mkdir(parents=True)
    shutil.copy(os.environ["FAKE_SELF"], folder / "bin" / "python")


def site_packages() -> Path:
    """Of the environment whose Python this plays."""
    return Path(os.environ["FAKE_SELF_RUN"]).parents[1] / "lib" / "python3.11" / "site-packages"


def pip(arguments: list[str]) -> None:
    """One call."""
    words = [word for word in arguments if not word.startswith("--disable") and word != "--no-input"]
    asked = " ".join(words)
    with CALLS.open("a") as file:
        file.write(asked + "\n")
    fail_word, _, text = os.environ.get("FAKE_FAIL", "").partition(":")
    if fail_word and fail_word in asked:
        print(text)
        sys.exit(1)
    hang = os.environ.get("FAKE_HANG")
    if hang and hang in asked:
        half = site_packages() / "half-1.0.dist-info"
        half.mkdir()
        (half / "METADATA").write_text("Name: half\n")
        CALLS.with_suffix(".pid").write_text(str(os.getpid()))
        time.sleep(600)
    if words[0] == "download":
        folder = Path(words[words.index("--dest") + 1])
        folder.mkdir(parents=True)
        shutil.copy(os.environ["FAKE_WHEEL"], folder)
    print("pip is content")


def probe(code: str) -> None:
    """What the real one would say of itself."""
    if "vllm.__version__" in code:
        packages = dict.fromkeys(("fastapi", "starlette", "pydantic", "uvicorn", "transformers", "numpy"), "1.0")
        version = os.environ.get("FAKE_VERSION", "9.8.7")
        facts = {"vllm": version, "torch": "2.13.0+cpu", "python": "3.11.7", "cpu": True, "packages": packages}
        print("PROBE " + json.dumps(facts))
    else:
        print('a line before\nPROBE {"in_place": true}')


def main(arguments: list[str]) -> None:
    """What Python would do with these arguments."""
    if arguments[:2] == ["-m", "venv"]:
        make_venv(Path(arguments[-1]))
    elif arguments[:2] == ["-m", "pip"]:
        pip(arguments[2:])
    elif arguments[0] == "-c":
        probe(arguments[1])
    else:
        sys.exit(f"what is {arguments}?")


if __name__ == "__main__":
    main(sys.argv[1:])
