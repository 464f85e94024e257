"""Names, shapes and layers of a model directory, judged as vLLM 0.21.0's loader judges them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mock_vllm.engine.digests import Received
from mock_vllm.engine.dtypes import BY_NAME
from mock_vllm.engine.packing import Announced
from mock_vllm.errors import WorkerError
from mock_vllm.model.checked_loader import CheckedLoader
from mock_vllm.model.directory import ModelDirectory
from mock_vllm.model.safetensors_header import StoredTensor
from mock_vllm.model.weights import WeightStore

pytestmark = pytest.mark.unit

FLOAT = BY_NAME["float32"]
SHAPES = {
    "model.embed_tokens.weight": (320, 64),
    "model.layers.0.self_attn.q_proj.weight": (128, 64),
    "model.layers.0.self_attn.k_proj.weight": (64, 64),
    "model.layers.0.self_attn.v_proj.weight": (64, 64),
    "model.layers.0.self_attn.q_norm.weight": (32,),
    "model.norm.weight": (64,),
    "lm_head.weight": (320, 64),
}
Q, K, V = (f"model.layers.0.self_attn.{part}_proj.weight" for part in "qkv")


def stored(name: str, shape: tuple[int, ...]) -> StoredTensor:
    nbytes = 4
    for size in shape:
        nbytes *= size
    return StoredTensor(name, FLOAT, shape, Path(__file__), 0, nbytes)


class Model:
    """A loader with its store."""

    def __init__(
        self, tied: bool = False, unknown_inside_is_error: bool = False, full_fused_layer: str | None = None
    ) -> None:
        tensors = {name: stored(name, shape) for name, shape in SHAPES.items()}
        directory = ModelDirectory("tiny", "Qwen3ForCausalLM", tied, 256, 320, tensors)
        self.store = WeightStore(tensors)
        self.loader = CheckedLoader(directory, self.store, unknown_inside_is_error, full_fused_layer)
        self.loader.begin(True)

    def load(self, name: Any, shape: tuple[int, ...] | None = None, digest: str = "new") -> None:
        announced = Announced(name, FLOAT, SHAPES[name] if shape is None else shape, 4)
        self.loader.load([Received(announced, digest, None)], 1)

    def state(self, name: str) -> tuple[str, str | None, bool, bool]:
        held = self.store._held[name]
        return held.origin, held.sha256, held.loaded, held.live


def refusal(model: Model, name: Any, shape: tuple[int, ...] = (2,)) -> str:
    with pytest.raises(WorkerError) as caught:
        model.load(name, shape)
    return str(caught.value)


def test_a_layer_of_one_tensor_goes_live_at_once() -> None:
    model = Model()
    model.load("lm_head.weight")
    assert model.state("lm_head.weight") == ("transfer", "new", True, True)


def test_a_fused_layer_goes_live_with_its_last_part() -> None:
    model = Model()
    model.load(Q)
    model.load(K)
    assert model.state(Q) == ("transfer", "new", True, False)
    model.load(V)
    assert [model.state(name)[3] for name in (Q, K, V)] == [True, True, True]


def test_a_layer_that_is_complete_takes_no_more_in_its_session() -> None:
    model = Model()
    model.load("model.norm.weight", digest="first")
    model.load("model.norm.weight", digest="second")
    assert model.state("model.norm.weight")[1] == "first"
    shown = model.store.snapshot()["model.norm.weight"]
    assert (shown.sha256, shown.received_sha256) == ("first", "second")
    model.loader.finish()
    model.loader.begin(True)
    model.load("model.norm.weight", digest="third")
    assert model.state("model.norm.weight")[1] == "third"


def test_later_releases_refuse_more_of_a_complete_fused_layer() -> None:
    model = Model(full_fused_layer="no more")
    for name in (Q, K, V):
        model.load(name)
    assert refusal(model, K, (64, 64)) == "no more"
    model.load("model.norm.weight")
    model.load("model.norm.weight")


def test_a_failed_session_leaves_its_buffers_to_the_next() -> None:
    model = Model()
    model.load(Q)
    model.loader.begin(True)
    model.load(Q)
    assert model.state(K) == ("uninitialised", None, False, True), "q twice fills the layer by count"


def test_a_partly_loaded_layer_is_put_in_place_at_the_finish() -> None:
    model = Model()
    model.load(Q)
    model.loader.finish()
    assert model.state(Q) == ("transfer", "new", True, True)
    assert model.state(K) == ("uninitialised", None, False, True)
    assert "model.norm.weight" not in model.store._held, "an untouched layer keeps its old weights"


def test_elements_are_counted_without_looking_which() -> None:
    model = Model()
    model.load(Q)
    model.load(Q, digest="again")
    assert model.state(Q) == ("transfer", "again", True, True)
    assert model.state(V) == ("uninitialised", None, False, True)


def test_a_misfit_alone_in_its_layer_is_forgotten_at_the_finish() -> None:
    model = Model()
    assert refusal(model, "model.norm.weight", (32,)).startswith("Attempted to load weight")
    model.loader.finish()
    assert "model.norm.weight" not in model.store._held


def test_a_misfit_beside_a_good_part_makes_every_finish_fail() -> None:
    model = Model()
    model.load(Q)
    text = refusal(model, K, (63, 64))
    assert text == "start (0) + length (64) exceeds dimension size (63)."
    for _ in range(2):
        with pytest.raises(WorkerError) as caught:
            model.loader.finish()
        assert str(caught.value) == text
    model.loader.begin(True)
    with pytest.raises(WorkerError):
        model.loader.finish()
    assert model.loader.on_meta


def test_a_layer_that_becomes_full_after_a_misfit_fails_with_the_old_text() -> None:
    model = Model()
    text = refusal(model, "model.norm.weight", (32,))
    assert refusal(model, "model.norm.weight", (64,)) == text
    model.loader.finish()
    assert model.state("model.norm.weight")[0] == "uninitialised"


@pytest.mark.parametrize("name", ["model.nope", "model.layers.0.nope.weight", "model", "model.rotary_emb.inv_freq"])
def test_an_unknown_name_inside_the_model_is_ignored(name: str) -> None:
    model = Model()
    model.load(name, (2,))
    model.loader.finish()
    assert model.state(name) == ("transfer", "new", False, False)


def test_later_releases_refuse_it() -> None:
    model = Model(unknown_inside_is_error=True)
    assert "There is no module or parameter named 'nope' in Qwen3Model" in refusal(model, "model.nope")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (5, "argument of type 'int' is not iterable"),
        (None, "argument of type 'NoneType' is not iterable"),
        (["x"], "'list' object has no attribute 'split'"),
    ],
)
def test_a_name_that_is_no_text(name: Any, text: str) -> None:
    assert refusal(Model(), name) == text


def test_a_tied_head_is_ignored() -> None:
    model = Model(tied=True)
    model.load("lm_head.weight")
    assert model.state("lm_head.weight")[2] is False


def test_an_unknown_name_outside_prints_every_parameter() -> None:
    text = refusal(Model(), "no.such")
    start = "There is no module or parameter named 'no' in Qwen3ForCausalLM. The available parameters belonging to  "
    assert text.startswith(start + "(Qwen3ForCausalLM) are: {")
    assert "'model.layers.0.self_attn.qkv_proj.weight'" in text
    assert "q_proj" not in text


def test_an_unknown_part_of_a_fused_layer_is_a_key_error() -> None:
    assert refusal(Model(), "model.layers.7.self_attn.q_proj.weight") == "'layers.7.self_attn.qkv_proj.weight'"


def test_a_wrong_shape_of_a_norm_says_both() -> None:
    assert refusal(Model(), "model.norm.weight", (32,)) == (
        "Attempted to load weight (torch.Size([32])) into parameter (torch.Size([64]))"
    )


def test_kernel_format_copies_in_place() -> None:
    model = Model()
    model.loader.begin(False)
    model.load("model.embed_tokens.weight")
    assert model.state("model.embed_tokens.weight")[3] is True
    assert refusal(model, "nope") == "Qwen3ForCausalLM has no attribute `nope`"
    assert refusal(model, "model.norm.weight", (64,)) == (
        "a leaf Variable that requires grad is being used in an in-place operation."
    )
