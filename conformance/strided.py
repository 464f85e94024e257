"""Views that are not contiguous, gathered by hand: what a sender must do before it broadcasts."""

from __future__ import annotations

from conformance.tensor import ITEM_SIZES, Tensor


def columns(source: Tensor, every: int) -> Tensor:
    """Every ``every``-th column of a matrix of shape (rows, columns), as a dense tensor of the same name and dtype.

    The bytes are those of torch's ``source[:, ::every].contiguous()``. Raises ValueError when it is no matrix.
    """
    if len(source.shape) != 2:
        raise ValueError(f"{source.name} has shape {list(source.shape)}, a matrix is needed")
    rows, width = source.shape
    item = ITEM_SIZES[source.dtype]
    kept = range(0, width, every)
    pieces = (
        source.data[(row * width + column) * item : (row * width + column + 1) * item]
        for row in range(rows)
        for column in kept
    )
    return Tensor(source.name, source.dtype, (rows, len(kept)), b"".join(pieces))
