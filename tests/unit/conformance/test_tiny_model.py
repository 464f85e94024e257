"""The tiny model: loadable by others' code, deterministic, quick to write."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from conformance import tiny_model
from conformance.tensor import Tensor, TensorSizeError
from conformance.tiny_model.tokenizer import byte_alphabet

pytestmark = pytest.mark.unit


def test_safetensors_reads_all_tensors_with_their_bytes(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from safetensors import safe_open

    tiny_model.write(tmp_path, "B")
    expected = {tensor.name: tensor for tensor in tiny_model.tensors("B")}
    with safe_open(tmp_path / "model.safetensors", framework="pt") as file:
        assert set(file.keys()) == set(expected)
        assert len(expected) == 25
        for name, tensor in expected.items():
            loaded = file.get_tensor(name)
            assert tuple(loaded.shape) == tensor.shape
            assert str(loaded.dtype) == "torch.float32"
            assert bytes(loaded.numpy().tobytes()) == tensor.data


def test_sizes_are_those_of_a_two_layer_qwen3(tmp_path: Path) -> None:
    tiny_model.write(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    shapes = {tensor.name: tensor.shape for tensor in tiny_model.tensors("A")}
    assert config["architectures"] == ["Qwen3ForCausalLM"]
    assert config["tie_word_embeddings"] is False
    assert shapes["lm_head.weight"] == (config["vocab_size"], config["hidden_size"]) == (320, 64)
    assert shapes["model.layers.1.self_attn.q_proj.weight"] == (4 * 32, 64)
    assert shapes["model.layers.1.self_attn.k_proj.weight"] == (2 * 32, 64)
    assert shapes["model.layers.0.mlp.down_proj.weight"] == (64, 128)


def test_checkpoints_are_the_same_everywhere_and_differ_from_each_other() -> None:
    # Literal digests: another machine or Python must not make another "A".
    digests = {
        name: hashlib.sha256(b"".join(tensor.data for tensor in tiny_model.tensors(name))).hexdigest() for name in "AB"
    }
    assert digests == {
        "A": "b355e4a463014884d48953198c508f9995f259eb8fa20ee6184b44375c1670e6",
        "B": "ac9ca491b868848220ab279cc46c38bde2b6fd147177ce4dc1c8702ca67df50b",
    }
    for a, b in zip(tiny_model.tensors("A"), tiny_model.tensors("B"), strict=True):
        assert a.name == b.name
        assert a.data != b.data


def test_writing_is_quick(tmp_path: Path) -> None:
    started = time.monotonic()
    subprocess.run(
        [sys.executable, "-m", "conformance.tiny_model", "write", str(tmp_path / "m")], check=True, timeout=20
    )
    assert (tmp_path / "m" / "model.safetensors").stat().st_size > 500_000
    assert time.monotonic() - started < 2.0  # 0.2 s on an idle machine; the rest is room for a loaded one


def test_unwritable_directory_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = subprocess.run(
        [sys.executable, "-m", "conformance.tiny_model", "write", str(tmp_path / "file" / "m")],
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("cannot write the tiny model to ")
    assert done.stderr.count("\n") == 1


def test_tokenizer_has_one_token_a_byte() -> None:
    alphabet = byte_alphabet()
    assert len(set(alphabet)) == 256
    assert alphabet[ord("A")] == "A"
    assert alphabet[0x20] == "\u0120"  # the space of byte-level BPE vocabularies


def test_tokenizer_loads_where_the_library_is_present(tmp_path: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    tiny_model.write(tmp_path)
    loaded = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    assert loaded.encode("hé").ids == list("hé".encode())
    assert loaded.decode([104, 105]) == "hi"


def test_a_tensor_must_fill_its_shape() -> None:
    with pytest.raises(TensorSizeError, match=r"tensor 'x' needs 8 bytes for its shape and dtype, got 4"):
        Tensor("x", "float32", (2,), b"1234")
