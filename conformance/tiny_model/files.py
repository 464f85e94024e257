"""The directory that a server serves: configuration, tokenizer and one safetensors file."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from conformance.tensor import Tensor
from conformance.tiny_model.architecture import config, generation_config
from conformance.tiny_model.tokenizer import tokenizer, tokenizer_config
from conformance.tiny_model.weights import tensors

_DTYPE_CODES = {
    "bool": "BOOL",
    "uint8": "U8",
    "int8": "I8",
    "int16": "I16",
    "int32": "I32",
    "int64": "I64",
    "float8_e4m3fn": "F8_E4M3",
    "float8_e5m2": "F8_E5M2",
    "float16": "F16",
    "bfloat16": "BF16",
    "float32": "F32",
    "float64": "F64",
}


def safetensors_bytes(items: Iterable[Tensor]) -> bytes:
    """A safetensors file: 8 bytes of header length (little-endian), a JSON header padded to 8 bytes, the data."""
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    pieces: list[bytes] = []
    offset = 0
    for item in items:
        end = offset + item.nbytes
        header[item.name] = {
            "dtype": _DTYPE_CODES[item.dtype],
            "shape": list(item.shape),
            "data_offsets": [offset, end],
        }
        pieces.append(item.data)
        offset = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return b"".join([len(text).to_bytes(8, "little"), text, *pieces])


def write(directory: Path | str, checkpoint: str = "A") -> Path:
    """Writes checkpoint ``"A"`` or ``"B"`` into ``directory`` (made if missing) and returns it.

    Raises KeyError for another checkpoint, OSError when a file cannot be written.
    """
    target = Path(directory)
    data = safetensors_bytes(tensors(checkpoint))
    target.mkdir(parents=True, exist_ok=True)
    documents = {
        "config.json": config(),
        "generation_config.json": generation_config(),
        "tokenizer.json": tokenizer(),
        "tokenizer_config.json": tokenizer_config(),
    }
    for name, document in documents.items():
        text = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
        (target / name).write_text(text, encoding="utf-8")
    (target / "model.safetensors").write_bytes(data)
    return target
