"""What vLLM's loaders say to a name that the model lacks (vLLM 0.21.0, recorded from the real server)."""

from __future__ import annotations

from collections.abc import Collection

from mock_vllm.errors import WorkerError
from mock_vllm.model.module_classes import module_class


def check_name(name: object) -> None:
    """Raise for a name that is no text, as the loader's first look at it does."""
    if isinstance(name, list | dict):
        raise WorkerError(f"'{type(name).__name__}' object has no attribute 'split'")
    if not isinstance(name, str):
        raise WorkerError(f"argument of type '{type(name).__name__}' is not iterable")


def no_module_or_parameter(name: str, architecture: str, roots: Collection[str], runtime_names: Collection[str]) -> str:
    """Return the loader's complaint about a name outside the model. It prints a set, in any order."""
    root = name.partition(".")[0]
    if root in roots:
        inside = {known for known in runtime_names if known.startswith(f"{root}.")}
        owner, shown = f"{root} ({module_class(root, architecture)})", name
    else:
        inside, owner, shown = set(runtime_names), f" ({architecture})", root
    return (
        f"There is no module or parameter named {shown!r} in {architecture}. "
        f"The available parameters belonging to {owner} are: {inside or set()}"
    )


def refuse_fused(runtime_name: str) -> None:
    """Raise for a part of a fused parameter that the model lacks: a look-up that fails, its key quoted."""
    if runtime_name.endswith("scale"):
        raise WorkerError("argument of type 'NoneType' is not iterable")
    raise WorkerError(repr(runtime_name))


def refuse_nested(name: str, known: Collection[str]) -> None:
    """Raise for a name that goes on below a known tensor outside `model.`."""
    for parameter in known:
        if name.startswith(f"{parameter}."):
            raise WorkerError(f"Attempted to load nested weight {name!r} into a single parameter {parameter!r}")


def check_kernel_copy(name: str, given: tuple[int, ...], expected: tuple[int, ...]) -> None:
    """Check an in-place copy of a kernel-format tensor.

    Raises:
        WorkerError: the parameter keeps `requires_grad` (norms do), or the shapes do not broadcast.
    """
    if "norm" in name:
        raise WorkerError("a leaf Variable that requires grad is being used in an in-place operation.")
    if given != expected:
        raise WorkerError(f"output with shape {list(expected)} doesn't match the broadcast shape {list(given)}")
