"""`init_info` and `update_info` in their typed form, with CPython's own wording when they do not fit.

vLLM parses both into dataclasses by calling them with the client's keys (vLLM 0.21.0,
`vllm.distributed.weight_transfer.base.WeightTransferEngine.parse_update_info`). A dataclass of the same module, name
and fields makes Python say the same.
"""

from __future__ import annotations

import base64
import dataclasses
from collections.abc import Callable
from typing import Any

from mock_vllm.errors import WorkerError
from mock_vllm.profiles.profile import REQUIRED, InfoClass

UNIQUE_ID_BYTES = 128
"""Of `ncclGetUniqueId`."""


def build_info_class(spec: InfoClass) -> type[Any]:
    """Make the dataclass that a release parses the body into."""
    fields: list[Any] = [
        (field.name, Any) if field.default is REQUIRED else (field.name, Any, dataclasses.field(default=field.default))
        for field in spec.fields
    ]
    if spec.keyword_only:
        made = dataclasses.make_dataclass(spec.name, fields, kw_only=True)
    else:
        made = dataclasses.make_dataclass(spec.name, fields)
    made.__module__ = spec.module
    initialiser = vars(made)["__init__"]
    initialiser.__qualname__ = f"{spec.name}.__init__"
    return made


class InfoParser:
    """Turns the client's object into a typed info, or says what vLLM says.

    Args:
        spec: the release's dataclass.
        label: `init_info` or `update_info`.
        engine_class: name of the transfer engine, printed in the message.
        check: what the release checks right after the fields were set (its `__post_init__`).
    """

    def __init__(
        self, spec: InfoClass, label: str, engine_class: str, check: Callable[[Any], None] | None = None
    ) -> None:
        self._info_class = build_info_class(spec)
        self._label = label
        self._engine_class = engine_class
        self._check = check

    def parse(self, given: Any) -> Any:
        """Return the typed info.

        Raises:
            WorkerError: a key is unknown or missing, `given` is not a mapping, or the check refused it.
        """
        try:
            info = self._info_class(**given)
            if self._check is not None:
                self._check(info)
        except TypeError as error:
            raise WorkerError(f"Invalid {self._label} for {self._engine_class}: {error}") from None
        return info


def check_lengths(info: Any) -> None:
    """Compare the three lists of an update.

    Raises:
        WorkerError: `dtype_names` or `shapes` has another length than `names`.
        TypeError: one of them has no length.
    """
    expected = len(info.names)
    for label in ("dtype_names", "shapes"):
        found = len(getattr(info, label))
        if found != expected:
            raise WorkerError(f"`{label}` should be of the same size as `names`: got {found} and {expected}")


def check_rendezvous(info: Any) -> None:
    """Check that `init_info` names its group in one way.

    Follows vLLM 0.32.0, `vllm.distributed.weight_transfer.nccl_common.decode_nccl_unique_id`. An empty id is none.

    Raises:
        WorkerError: both ways are given, or neither, or the id is not the base64 of 128 bytes.
    """
    label = "NCCLWeightTransferInitInfo"
    address, port, unique_id = info.master_address, info.master_port, info.nccl_unique_id_b64
    if not unique_id:
        if address is None or port is None:
            raise WorkerError(
                f"{label}: need nccl_unique_id_b64, or both master_address and master_port "
                f"(got master_address={address!r}, master_port={port!r})"
            )
        return
    if address is not None or port is not None:
        raise WorkerError(f"{label}: pass nccl_unique_id_b64 OR master_address/master_port, not both")
    try:
        decoded = base64.b64decode(unique_id, validate=True)
    except (ValueError, TypeError):
        raise WorkerError(
            f"{label}: nccl_unique_id_b64 is not valid standard base64 (URL-safe base64 is not accepted)"
        ) from None
    if len(decoded) != UNIQUE_ID_BYTES:
        raise WorkerError(f"{label}: nccl_unique_id_b64 must decode to {UNIQUE_ID_BYTES} bytes, got {len(decoded)}")
