"""The command that writes the tiny model."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from conformance.tiny_model.files import write
from conformance.tiny_model.weights import CHECKPOINTS


def main(arguments: Sequence[str] | None = None) -> int:
    """Writes one checkpoint into a directory. Returns 0, or 1 with one line on stderr when it cannot be written."""
    parser = argparse.ArgumentParser(prog="python -m conformance.tiny_model", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    writer = commands.add_parser("write", help="write config, tokenizer and weights into a directory")
    writer.add_argument("directory", type=Path)
    writer.add_argument("--checkpoint", choices=CHECKPOINTS, default="A")
    options = parser.parse_args(arguments)
    try:
        write(options.directory, options.checkpoint)
    except OSError as error:
        print(f"cannot write the tiny model to {options.directory}: {error.strerror or error}", file=sys.stderr)
        return 1
    print(f"wrote checkpoint {options.checkpoint} to {options.directory}")
    return 0
