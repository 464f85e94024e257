"""What distinguishes one vLLM release from another on the weight-transfer routes, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

REQUIRED = object()
"""Default of a field that has none."""


@dataclass(frozen=True)
class Field:
    """One field of `init_info` or `update_info`; `default` is `REQUIRED` where the release has none."""

    name: str
    default: Any = REQUIRED


class Bodies(Enum):
    """How a release reads the bodies of init and update."""

    BY_HAND = "parsed by hand, whatever the content type says"
    TYPED = "declared to FastAPI, which wants a JSON content type"


class Validation(Enum):
    """How a release words FastAPI's validation errors."""

    WITH_PLACE = "FastAPI's text with the file of the route, then the list of errors once more"
    SUMMARISED = "one line an error, inputs shortened, no file"


class TorchTexts(Enum):
    """Whose words `torch.empty` uses for arguments that do not fit."""

    TORCH_2_11 = "2.11"
    TORCH_2_13 = "2.13"


@dataclass(frozen=True)
class InfoClass:
    """The dataclass a release parses `init_info` or `update_info` into.

    CPython builds the wording of a wrong call from the class's module and name, so both are part of the interface.
    """

    module: str
    name: str
    fields: tuple[Field, ...]
    keyword_only: bool = False


@dataclass(frozen=True)
class Endpoint:
    """Where the release defines a route; validation errors print it."""

    file: str
    line: int
    function: str


@dataclass(frozen=True)
class SessionTexts:
    """What the worker says about the order of calls."""

    not_configured: str
    already_active: str
    update_without_start: str
    finish_without_start: str
    not_initialized: str


@dataclass(frozen=True)
class Profile:
    """One release.

    Attributes:
        version: what `GET /version` answers.
        engine_class: name of the worker's transfer engine, printed in errors.
        init_info, update_info: the typed forms of the two bodies.
        session: wording of the session rules.
        failed_update_closes_session: what a failed update leaves behind (false up to 0.22.1).
        unknown_inside_is_error: an unknown name below a known module is an error (from 0.25) or ignored.
        unsupported_dtype: wording when NCCL has no such type; `{dtype}` is filled in.
        endpoints: path to the place that defines it, for validation errors that print it (up to 0.25).
        bodies, validation: how requests are read and refused.
        torch_texts: the wording of torch that the release pins.
        packed_in_init: packing is announced in `init_info` for the whole group (from 0.28), else in each update.
        update_per_worker: `update_info` may be an array, one entry a worker (from 0.29).
        unique_id: `init_info` may name a group by NCCL's unique id instead of an address (from 0.30).
        unpacks_scalars: tensors without dimensions may travel packed (from 0.32).
        value_errors_close: a ValueError of the API process reaches uvicorn, which closes the connection (up to 0.25).
        hides_paths: paths in error texts become `<path>` (from 0.26).
        flush_answers_json: `/reset_prefix_cache` answers `{"success": …}` (from 0.26), else nothing.
        sleep_answers_json: `/sleep` and `/wake_up` validate their query and answer JSON (from 0.32), else nothing.
        later_routes: routes that the first release of the interface did not have.
        waits_by_parameter: `/pause` knows `wait_for_inflight_requests` (up to 0.31).
        full_fused_layer: what the loader says to a part of a fused layer that is complete in this session; None: it
            drops the part without a word.
        fingerprint: `system_fingerprint` of completions.
        completion_fields, usage_fields: fields of a completion and of its usage that are null here.
        no_buffers: what indexing an empty list of buffers says.
    """

    version: str
    engine_class: str
    init_info: InfoClass
    update_info: InfoClass
    session: SessionTexts
    failed_update_closes_session: bool
    unknown_inside_is_error: bool
    unsupported_dtype: str
    endpoints: Mapping[str, Endpoint] = field(default_factory=dict)
    bodies: Bodies = Bodies.BY_HAND
    validation: Validation = Validation.WITH_PLACE
    torch_texts: TorchTexts = TorchTexts.TORCH_2_11
    packed_in_init: bool = False
    update_per_worker: bool = False
    unique_id: bool = False
    unpacks_scalars: bool = False
    value_errors_close: bool = True
    hides_paths: bool = False
    flush_answers_json: bool = False
    sleep_answers_json: bool = False
    later_routes: frozenset[str] = frozenset()
    waits_by_parameter: bool = True
    no_buffers: str = "list index out of range"
    full_fused_layer: str | None = None
    fingerprint: str = ""
    completion_fields: tuple[str, ...] = ()
    usage_fields: tuple[str, ...] = ()
