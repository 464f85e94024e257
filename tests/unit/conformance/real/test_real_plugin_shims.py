"""Each shim of the plugin against a stand-in for the part of vLLM that it changes."""

from __future__ import annotations

from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch

from conformance.real.plugin.weight_plane import loader_hook, process_group, trainer_side
from conformance.real.plugin.weight_plane.communicator import PlaneCommunicator, meet
from conformance.real.plugin.weight_plane.errors import MeetingError
from conformance.real.plugin.weight_plane.received import RECEIVED

pytestmark = pytest.mark.unit

WEIGHT = torch.tensor([1.0, 2.0])


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing received before; afterwards torch as it was, which the shims change for the whole process."""
    RECEIVED.forget()
    for name in ("Stream", "stream", "current_stream"):
        monkeypatch.setattr(torch.cuda, name, getattr(torch.cuda, name))
    for name in ("current_device_index", "synchronize"):
        monkeypatch.setattr(torch.accelerator, name, getattr(torch.accelerator, name))


def test_the_group_is_made_by_the_engine_up_to_0_24() -> None:
    class Engine:
        @staticmethod
        def _stateless_init_process_group(*_args: Any) -> str:
            return "NCCL"

    process_group.in_engine(Engine)
    assert Engine._stateless_init_process_group is meet


def test_the_group_is_made_by_a_common_function_from_0_25() -> None:
    common = ModuleType("nccl_common")
    process_group.in_common(common)
    assert common.stateless_init_process_group is meet
    assert not hasattr(common, "uid_init_process_group")


def test_a_unique_id_is_refused_from_0_30() -> None:
    common = ModuleType("nccl_common")
    common.uid_init_process_group = lambda *_args: "NCCL"  # type: ignore[attr-defined]
    process_group.in_common(common)
    with pytest.raises(MeetingError, match="nccl_unique_id_b64 names no address"):
        common.uid_init_process_group(bytes(128), 1, 2, 0)


def test_the_loader_is_an_argument_up_to_0_24() -> None:
    def receive_weights(_self: Any, update_info: Any, load_weights: Any) -> None:
        load_weights([(update_info, WEIGHT)])

    loaded: list[Any] = []
    loader_hook.hook(receive_weights)(None, "a", loaded.extend)
    assert [name for name, _ in loaded] == ["a"]
    assert [(one["name"], one["dtype"], one["shape"]) for one in RECEIVED.as_dicts()] == [("a", "float32", [2])]


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.loaded: list[str] = []

    def load_weights(self, weights: Any) -> None:
        for name, _ in weights:
            if name == "bad":
                raise ValueError("refused")
            self.loaded.append(name)


def test_the_loader_is_the_models_from_0_25_and_is_the_models_again_after_a_failure() -> None:
    def receive_weights(self: Any, update_info: list[str]) -> None:
        for name in update_info:
            self.model.load_weights([(name, WEIGHT)])

    engine = SimpleNamespace(model=Model())
    received = loader_hook.hook(receive_weights)
    received(engine, ["a"])
    with pytest.raises(ValueError, match="refused"):
        received(engine, ["b", "bad"])
    assert engine.model.loaded == ["a", "b"]
    # What the loader refused has been received all the same.
    assert [one["name"] for one in RECEIVED.as_dicts()] == ["a", "b", "bad"]
    assert "load_weights" not in vars(engine.model)
    engine.model.load_weights([("c", WEIGHT)])
    assert len(RECEIVED.as_dicts()) == 3


def test_cuda_means_the_cpu_in_the_static_trainer_methods_up_to_0_27() -> None:
    class Engine:
        @staticmethod
        def trainer_init(_info: Any) -> Any:
            return torch.accelerator.current_device_index()

        @staticmethod
        def trainer_send_weights(_iterator: Any, _arguments: Any) -> Any:
            torch.cuda.current_stream().synchronize()
            return torch.empty(2, device="cuda").device

    module = ModuleType("nccl_engine")
    module.NCCLWeightTransferEngine = Engine  # type: ignore[attr-defined]
    trainer_side.install(module)
    assert Engine.trainer_init({}) == 0
    assert Engine.trainer_send_weights(iter(()), {}) == torch.device("cpu")


def test_cuda_means_the_cpu_in_the_trainer_engine_from_0_28_and_its_group_is_left() -> None:
    class Trainer:
        model_update_group: Any = None

        @classmethod
        def trainer_init(cls, _info: Any) -> Any:
            return cls, torch.empty(2, device="cuda:0").device

        def send_weights(self) -> Any:
            with torch.cuda.stream(torch.cuda.Stream()):
                return torch.empty(2, device=torch.device("cuda")).device

        def shutdown(self) -> None:
            self.model_update_group = None

    module = ModuleType("nccl_engine")
    module.NCCLTrainerWeightTransferEngine = Trainer  # type: ignore[attr-defined]
    trainer_side.install(module)
    assert Trainer.trainer_init({}) == (Trainer, torch.device("cpu"))
    trainer = Trainer()
    assert trainer.send_weights() == torch.device("cpu")
    closed: list[bool] = []
    trainer.model_update_group = SimpleNamespace(close=lambda: closed.append(True))
    trainer.shutdown()
    assert closed == [True]
    trainer.shutdown()
    assert closed == [True]


def test_a_communicator_is_left_by_either_name() -> None:
    closed: list[bool] = []
    end: Any = SimpleNamespace(close=lambda: closed.append(True))
    PlaneCommunicator(end, 1, 2).close()
    PlaneCommunicator(end, 1, 2).destroy()
    assert closed == [True, True]
