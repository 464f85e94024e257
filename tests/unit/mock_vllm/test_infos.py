"""The typed bodies say what CPython says about vLLM's dataclasses (wording recorded from vLLM 0.21.0)."""

from __future__ import annotations

from typing import Any

import pytest

from mock_vllm.engine.infos import InfoParser, check_lengths
from mock_vllm.errors import WorkerError
from mock_vllm.profiles.v0_21_0 import PROFILE

pytestmark = pytest.mark.unit

UPDATE = InfoParser(PROFILE.update_info, "update_info", PROFILE.engine_class, check_lengths)
INIT = InfoParser(PROFILE.init_info, "init_info", PROFILE.engine_class)


def test_defaults_are_the_releases() -> None:
    info = UPDATE.parse({"names": ["a"], "dtype_names": ["float32"], "shapes": [[1]]})
    assert (info.packed, info.packed_buffer_size_bytes, info.packed_num_buffers) == (False, 1073741824, 2)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (
            {"bogus": 1},
            "Invalid update_info for NCCLWeightTransferEngine: "
            "NCCLWeightTransferUpdateInfo.__init__() got an unexpected keyword argument 'bogus'",
        ),
        (
            {},
            "Invalid update_info for NCCLWeightTransferEngine: NCCLWeightTransferUpdateInfo.__init__() "
            "missing 3 required positional arguments: 'names', 'dtype_names', and 'shapes'",
        ),
        (
            "str",
            "Invalid update_info for NCCLWeightTransferEngine: vllm.distributed.weight_transfer.nccl_engine."
            "NCCLWeightTransferUpdateInfo() argument after ** must be a mapping, not str",
        ),
        (
            {"names": ["a", "b"], "dtype_names": ["float32"], "shapes": [[2]]},
            "`dtype_names` should be of the same size as `names`: got 1 and 2",
        ),
        (
            {"names": ["a"], "dtype_names": ["float32"], "shapes": []},
            "`shapes` should be of the same size as `names`: got 0 and 1",
        ),
        (
            {"names": 1, "dtype_names": [], "shapes": []},
            "Invalid update_info for NCCLWeightTransferEngine: object of type 'int' has no len()",
        ),
    ],
)
def test_an_update_that_does_not_fit(given: Any, text: str) -> None:
    with pytest.raises(WorkerError) as caught:
        UPDATE.parse(given)
    assert str(caught.value) == text


def test_init_names_a_missing_field() -> None:
    with pytest.raises(WorkerError) as caught:
        INIT.parse({"master_address": "h", "master_port": 1, "rank_offset": 1})
    assert str(caught.value) == (
        "Invalid init_info for NCCLWeightTransferEngine: "
        "NCCLWeightTransferInitInfo.__init__() missing 1 required positional argument: 'world_size'"
    )
