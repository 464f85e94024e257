"""In which form a round travels: packed buffers, broadcasts of single tensors, or both where the release lets it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from vime_sync.dtypes import from_torch_name
from vime_sync.errors import SettingError, UnsupportedTensor
from vime_sync.releases import Release
from vime_sync.tensors import TensorSource
from vime_sync.wording import some


@dataclass(frozen=True, slots=True)
class Form:
    """The form of a round, and which tensors travel how.

    packed        whether the round is packed, as far as the release can pack its tensors
    packed_ones   tensors that travel in packed buffers, in their order
    plain_ones    tensors that travel by themselves, in their order
    reason        a sentence that says why a tensor, or the round, does not travel as it would by default or as asked;
                  else None
    """

    packed: bool
    packed_ones: tuple[TensorSource, ...]
    plain_ones: tuple[TensorSource, ...]
    reason: str | None = None


def choose_form(tensors: Iterable[TensorSource], release: Release, *, packed: bool | None) -> Form:
    """The form in which all tensors can travel.

    packed  the wanted form; None for packed buffers, unless only the other form carries everything

    Up to vLLM 0.27 the form may change from call to call: a tensor that the wanted form cannot carry travels in the
    other. From 0.28 on a group has one form: a tensor that it cannot carry is refused, or decides the form where the
    caller left that open.

    Raises SettingError for a name that comes twice, UnsupportedTensor for what cannot travel: it names the tensors and
    says when the other form carries them.
    """
    given = list(tensors)
    seen: set[str] = set()
    for tensor in given:
        if tensor.name in seen:
            raise SettingError("tensors", f"the name {tensor.name!r} comes twice")
        seen.add(tensor.name)
    unpackable = [tensor for tensor in given if not _packs(tensor, release)]
    unplain = [tensor for tensor in given if not _goes_plain(tensor, release)]
    kept_back = {id(tensor) for tensor in unplain}
    stranded = [tensor for tensor in unpackable if id(tensor) in kept_back]
    if stranded:
        raise _refused(release, f"cannot receive {_listed(stranded)} in any form")
    if release.packed_in_update:
        return _mixed(given, unpackable, unplain, packed=packed is not False)
    return _single(given, unpackable, unplain, release, packed)


def _mixed(
    given: list[TensorSource], unpackable: list[TensorSource], unplain: list[TensorSource], *, packed: bool
) -> Form:
    others = unpackable if packed else unplain
    apart = {id(tensor) for tensor in others}
    kept = tuple(tensor for tensor in given if id(tensor) not in apart)
    moved = tuple(others)
    if packed:
        reason = f"cannot be packed and travel by themselves: {_listed(moved)}" if moved else None
        return Form(True, kept, moved, reason)
    reason = f"cannot travel by themselves and are packed: {_listed(moved)}" if moved else None
    return Form(False, moved, kept, reason)


def _single(
    given: list[TensorSource],
    unpackable: list[TensorSource],
    unplain: list[TensorSource],
    release: Release,
    packed: bool | None,
) -> Form:
    if packed is not False and not unpackable:
        return Form(True, tuple(given), ())
    if packed is not True and not unplain:
        reason = f"not packed: vLLM {release.version} cannot unpack {_listed(unpackable)}" if packed is None else None
        return Form(False, (), tuple(given), reason)
    if unpackable and unplain:
        together = f"packed excludes {_listed(unpackable)}, plain excludes {_listed(unplain)}"
        raise _refused(release, f"receives a round in one form, and none carries all: {together}")
    if packed:
        step = "push with --no-packed (packed=False), which carries everything here"
        raise _refused(release, f"cannot receive {_listed(unpackable)} packed", step)
    step = "push with --packed (packed=True), which carries everything here"
    raise _refused(release, f"cannot receive {_listed(unplain)} without packing", step)


def _refused(release: Release, why: str, step: str = "convert them, or leave them out") -> UnsupportedTensor:
    return UnsupportedTensor(f"vLLM {release.version}", why, next_step=step)


def _listed(tensors: Sequence[TensorSource]) -> str:
    return some([f"{tensor.name} ({tensor.dtype} {list(tensor.shape)})" for tensor in tensors])


def _packs(tensor: TensorSource, release: Release) -> bool:
    dtype = from_torch_name(tensor.dtype)
    return dtype is not None and release.carries_packed(dtype, len(tensor.shape))


def _goes_plain(tensor: TensorSource, release: Release) -> bool:
    dtype = from_torch_name(tensor.dtype)
    return dtype is not None and release.carries_plain(dtype)
