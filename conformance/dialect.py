"""The same case in the words of another release: cases are written as 0.21.0 understands them.

Two things moved that nearly every case uses. From 0.25 on no name inside the model is ignored, so tensors that only
travel go by a name that every loader drops: a rotary buffer of old checkpoints. From 0.28 on packing is said once, in
the init of the group, and an update that names it is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache

from conformance.case import Case
from conformance.cases import all_cases
from conformance.request_data import packing_of
from conformance.steps import Begin, Holds, Init, Step, Update
from conformance.tensor import Tensor

NAMES_ARE_STRICT_SINCE = (0, 25)
PACKING_AT_INIT_SINCE = (0, 28)
IGNORED_PREFIX = "model.nope."
IGNORED_SUFFIX = ".rotary_emb.inv_freq"
_PACKING_KEYS = ("packed", "packed_buffer_size_bytes", "packed_num_buffers")


class DialectError(ValueError):
    """A case cannot be said in a release: it must not apply to it."""

    def __init__(self, case_id: str, release: str, why: str) -> None:
        super().__init__(f"{case_id} cannot be said in {release}: {why}")
        self.case_id = case_id
        self.release = release
        self.why = why


@cache
def cases_for(release: str) -> tuple[Case, ...]:
    """The cases that apply to a release, in its words and in the order of their modules. Raises DialectError."""
    return tuple(in_release(case, release) for case in all_cases() if release in case.applies_to)


def in_release(case: Case, release: str) -> Case:
    """A case as a release understands it; the number and the kinds of its steps stay. Raises DialectError."""
    if case.applies_to == (release,):
        return case
    since = tuple(int(part) for part in release.split(".")[:2])
    steps = case.steps
    if since >= NAMES_ARE_STRICT_SINCE:
        steps = tuple(_renamed(step) for step in steps)
    if since >= PACKING_AT_INIT_SINCE:
        try:
            steps = _packed_at_init(steps)
        except ValueError as error:
            raise DialectError(case.id, release, str(error)) from error
    return replace(case, steps=steps)


def _dropped_by_loaders(tensor: Tensor) -> Tensor:
    if not tensor.name.startswith(IGNORED_PREFIX):
        return tensor
    return replace(tensor, name=f"model.{tensor.name.removeprefix(IGNORED_PREFIX)}{IGNORED_SUFFIX}")


def _renamed(step: Step) -> Step:
    match step:
        case Begin(label, inner):
            renamed = _renamed(inner)
            assert isinstance(renamed, type(inner))
            return Begin(label, renamed)
        case Update() | Holds():
            return replace(step, tensors=tuple(_dropped_by_loaders(tensor) for tensor in step.tensors))
        case _:
            return step


def _inner(step: Step) -> Step:
    return step.step if isinstance(step, Begin) else step


def _packing(step: Update) -> dict[str, object]:
    return packing_of(step) | {key: step.announce[key] for key in _PACKING_KEYS if key in step.announce}


def _packed_at_init(steps: Sequence[Step]) -> tuple[Step, ...]:
    """Moves what updates say about packing into the init of their group. Raises ValueError where one group has two."""
    return tuple(_group_with_packing(steps))


def _group_with_packing(steps: Sequence[Step]) -> Iterator[Step]:
    packing: Mapping[str, object] = {}
    has_group = False
    for index, step in enumerate(steps):
        inner = _inner(step)
        if isinstance(inner, Init):
            has_group, packing = True, _packing_of_group(steps[index + 1 :])
            said = replace(inner, info={**inner.info, **packing})
            yield replace(step, step=said) if isinstance(step, Begin) else said
        elif isinstance(inner, Update):
            if _packing(inner) != packing and (has_group or _packing(inner)):
                raise ValueError("packing is said once for a group, and its updates differ")
            kept = {key: value for key, value in inner.announce.items() if key not in _PACKING_KEYS}
            silent = replace(inner, announce=kept, packed_at_init=True)
            yield replace(step, step=silent) if isinstance(step, Begin) else silent
        else:
            yield step


def _packing_of_group(rest: Sequence[Step]) -> dict[str, object]:
    for step in rest:
        inner = _inner(step)
        if isinstance(inner, Init):
            break
        if isinstance(inner, Update):
            return _packing(inner)
    return {}
