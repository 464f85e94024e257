"""One case of the suite: data that a runner executes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from conformance.steps import Step

Level = Literal["contract", "wording", "platform"]
Need = Literal["data plane", "digests", "checked model", "tiny model", "no group"]

PLANE_TAG = "cpu-plane"
"""Evidence about the server's code over the TCP plane, not about what NCCL does."""


@dataclass(frozen=True)
class Case:
    """``id`` is AREA-NNN and never changes.

    ``level``: whether a difference decides (contract), is about texts (wording) or about the machine it was seen on
    (platform). ``requirement`` is a key of ``conformance.requirements``, ``source`` names what the behaviour was read
    in (vLLM module and symbol), ``applies_to`` the releases; ``needs`` is what a target must offer.
    """

    id: str
    sentence: str
    steps: tuple[Step, ...]
    requirement: str
    source: str
    level: Level = "contract"
    applies_to: tuple[str, ...] = ("0.21.0",)
    needs: frozenset[Need] = frozenset()
    tags: frozenset[str] = frozenset()
