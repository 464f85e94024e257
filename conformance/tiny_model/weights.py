"""The values of the tiny model's two checkpoints."""

from __future__ import annotations

import random
import sys
from array import array
from functools import cache
from math import prod

from conformance.tensor import Tensor
from conformance.tiny_model.architecture import parameter_shapes

CHECKPOINTS = ("A", "B")
_SEEDS = {"A": 20260101, "B": 20260102}
_SPREAD = 0.25
"""Half-width of the uniform distribution. Larger than a trained model's, so that greedy tokens differ by prompt."""


def _values(generator: random.Random, count: int, centre: float) -> bytes:
    # random() is the one method whose sequence Python guarantees for a seed across versions and platforms.
    draw = generator.random
    values = array("f", [centre + _SPREAD * (2.0 * draw() - 1.0) for _ in range(count)])
    if sys.byteorder == "big":
        values.byteswap()
    return values.tobytes()


@cache
def tensors(checkpoint: str) -> tuple[Tensor, ...]:
    """All 25 float32 tensors of checkpoint ``"A"`` or ``"B"``, the same bytes on every machine. Raises KeyError."""
    generator = random.Random(_SEEDS[checkpoint])
    made = []
    for name, shape in parameter_shapes().items():
        centre = 1.0 if "norm" in name else 0.0
        made.append(Tensor(name, "float32", shape, _values(generator, prod(shape), centre)))
    return tuple(made)
