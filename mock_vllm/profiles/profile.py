"""What distinguishes one vLLM release from another on the weight-transfer routes, as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

REQUIRED = object()
"""Default of a field that has none."""


@dataclass(frozen=True)
class Field:
    """One field of `init_info` or `update_info`; `default` is `REQUIRED` where the release has none."""

    name: str
    default: Any = REQUIRED


@dataclass(frozen=True)
class InfoClass:
    """The dataclass a release parses `init_info` or `update_info` into.

    CPython builds the wording of a wrong call from the class's module and name, so both are part of the interface.
    """

    module: str
    name: str
    fields: tuple[Field, ...]


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
        default_packed_buffer_size_bytes: vLLM's limit of a packed buffer, in bytes.
        session: wording of the session rules.
        failed_update_closes_session: what a failed update leaves behind (false up to 0.22.1).
        unknown_inside_is_error: an unknown name below a known module is an error (from 0.25) or ignored.
        unsupported_dtype: wording when NCCL has no such type; `{dtype}` is filled in.
        endpoints: path to the place that defines it, for validation errors that print it (up to 0.25).
    """

    version: str
    engine_class: str
    init_info: InfoClass
    update_info: InfoClass
    default_packed_buffer_size_bytes: int
    session: SessionTexts
    failed_update_closes_session: bool
    unknown_inside_is_error: bool
    unsupported_dtype: str
    endpoints: dict[str, Endpoint]
