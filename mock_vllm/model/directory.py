"""A model directory in the Hugging Face layout: its config and the tensors of its safetensors files."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mock_vllm.errors import SettingsError
from mock_vllm.model.safetensors_header import StoredTensor, read_header


@dataclass(frozen=True)
class ModelDirectory:
    """What the mock knows of a directory.

    Attributes:
        path: as the user gave it; vLLM shows it as the model's id.
        architecture: first entry of `architectures` in config.json, or `Model` where it names none.
        tied: `tie_word_embeddings`.
        max_model_len: `max_position_embeddings`, in tokens, or None.
        vocabulary: `vocab_size`, or None.
        tensors: every tensor by checkpoint name.
    """

    path: str
    architecture: str
    tied: bool
    max_model_len: int | None
    vocabulary: int | None
    tensors: dict[str, StoredTensor]


def read_model_directory(path: str) -> ModelDirectory:
    """Read config.json and the headers of all safetensors files.

    Raises:
        SettingsError: there is no safetensors file, or one of the files is broken.
    """
    folder = Path(path)
    files = sorted(folder.glob("*.safetensors"))
    if not files:
        raise SettingsError(
            "MODEL", f"{path} has no *.safetensors file; give a directory that has one, or a name that is no directory"
        )
    tensors: dict[str, StoredTensor] = {}
    for file in files:
        for name, tensor in read_header(file).items():
            if name in tensors:
                raise SettingsError("MODEL", f"tensor {name} is in {tensors[name].file.name} and in {file.name}")
            tensors[name] = tensor
    config = _read_config(folder / "config.json")
    architectures = config.get("architectures") or ["Model"]
    return ModelDirectory(
        path=path,
        architecture=str(architectures[0]),
        tied=bool(config.get("tie_word_embeddings", False)),
        max_model_len=config.get("max_position_embeddings"),
        vocabulary=config.get("vocab_size"),
        tensors=tensors,
    )


def _read_config(file: Path) -> dict[str, Any]:
    if not file.exists():
        return {}
    try:
        config = json.loads(file.read_text())
    except ValueError as error:
        raise SettingsError("MODEL", f"{file}: not JSON: {error}") from error
    if not isinstance(config, dict):
        raise SettingsError("MODEL", f"{file}: not a JSON object")
    return config
