"""What each kind of parameter does with a tensor of another shape (vLLM 0.21.0, recorded from the real server).

Linear layers cut a tensor to their size along the parallel dimension before they compare, so one that is too long there
is taken without a word. Vocabulary and linear layers assert without a text; the default loader says both shapes.
"""

from __future__ import annotations

from mock_vllm.errors import WorkerError
from mock_vllm.model.layout import is_fused_part

_ROW_PARALLEL = (".o_proj.", ".down_proj.")
_VOCABULARY = ("embed_tokens.", "lm_head.")

Shape = tuple[int, ...]


def check_shape(name: str, given: Shape, expected: Shape) -> None:
    """Compare a tensor's shape with its parameter's.

    Args:
        name: checkpoint name; it tells the kind of the parameter.
        given, expected: in elements.

    Raises:
        WorkerError: the parameter does not take the tensor.
    """
    if given == expected:
        return
    if any(part in name for part in _VOCABULARY):
        raise WorkerError("" if given else "tuple index out of range")
    if is_fused_part(name):
        _check_cut(given, expected, 0)
    elif any(part in name for part in _ROW_PARALLEL):
        _check_cut(given, expected, 1)
    else:
        raise WorkerError(f"Attempted to load weight ({size_text(given)}) into parameter ({size_text(expected)})")


def size_text(shape: Shape) -> str:
    """Return a shape as torch prints it."""
    return f"torch.Size({list(shape)})"


def _check_cut(given: Shape, expected: Shape, dimension: int) -> None:
    """Cut along one dimension as `torch.narrow` does, then compare."""
    if len(given) <= dimension:
        raise WorkerError(
            "narrow() cannot be applied to a 0-dim tensor."
            if dimension == 0
            else f"Dimension out of range (expected to be in range of [-1, 0], but got {dimension})"
        )
    length = expected[dimension]
    if given[dimension] < length:
        raise WorkerError(f"start (0) + length ({length}) exceeds dimension size ({given[dimension]}).")
    if (*given[:dimension], length, *given[dimension + 1 :]) != expected:
        raise WorkerError("")
