"""One case of the suite: data that a runner executes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from conformance.steps import Step

Level = Literal["contract", "wording", "platform"]
Need = Literal["data plane", "digests", "checked model", "tiny model", "no group", "completions"]

PLANE_TAG = "cpu-plane"
"""Evidence about the server's code over the TCP plane, not about what NCCL does."""


FIRST_RELEASE = ("0.21.0",)
RELEASES = ("0.21.0", "0.32.0")
"""The releases that the suite knows; each has its truth."""


@dataclass(frozen=True)
class Launch:
    """How the server of a case is started, where that matters; the default is what every other case needs.

    ``dev_mode``: VLLM_SERVER_DEV_MODE, ``weight_transfer``: whether a weight transfer config is given.
    """

    dev_mode: bool = True
    weight_transfer: bool = True

    def __str__(self) -> str:
        parts = [] if self.dev_mode else ["without VLLM_SERVER_DEV_MODE"]
        parts += [] if self.weight_transfer else ["without a weight transfer config"]
        return " and ".join(parts) or "as usual"


USUAL = Launch()


@dataclass(frozen=True)
class Case:
    """``id`` is AREA-NNN and never changes.

    ``level``: whether a difference decides (contract), is about texts (wording) or about the machine it was seen on
    (platform). ``requirement`` is a key of ``conformance.requirements``, ``source`` names what the behaviour was read
    in (vLLM module and symbol), ``applies_to`` the releases; ``needs`` is what a target must offer, ``launch`` how
    its server was started. A case that ``spoils`` its server (kills the engine) needs one that nobody uses after it.
    """

    id: str
    sentence: str
    steps: tuple[Step, ...]
    requirement: str
    source: str
    level: Level = "contract"
    applies_to: tuple[str, ...] = RELEASES
    needs: frozenset[Need] = frozenset()
    launch: Launch = USUAL
    spoils: bool = False
    tags: frozenset[str] = frozenset()
