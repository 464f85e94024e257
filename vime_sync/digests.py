"""Digests of what was sent, and whether the engine holds the same."""

from __future__ import annotations

import concurrent.futures
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from vime_sync.errors import DigestMismatch
from vime_sync.tensors import TensorSource


@dataclass(frozen=True, slots=True)
class SentTensor:
    """A tensor as it was sent; `sha256` of its bytes, in hexadecimal."""

    dtype: str
    shape: tuple[int, ...]
    nbytes: int
    sha256: str


class SentDigests:
    """Digests tensors while they travel, on one thread: hashing and sending both leave the interpreter free.

    Hashing is the slower of the two, so it may lag behind: while a bucket travels, the one before may still be hashed.
    """

    def __init__(self) -> None:
        self._executor = concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix="vime-sync-digest")
        self._before: dict[str, concurrent.futures.Future[SentTensor]] = {}
        self._under_way: dict[str, concurrent.futures.Future[SentTensor]] = {}
        self.sent: dict[str, SentTensor] = {}

    def add(self, tensor: TensorSource, view: memoryview) -> None:
        """Begins the digest of a tensor's bytes."""
        self._under_way[tensor.name] = self._executor.submit(_digest, tensor, view)

    def end_bucket(self) -> None:
        """A bucket has been added. Waits for the one before it, whose bytes go: never are more than two held."""
        self._collect(self._before)
        self._before, self._under_way = self._under_way, {}

    def settle(self) -> None:
        """Waits for all that was begun: `sent` is complete then."""
        self._collect(self._before)
        self._collect(self._under_way)

    def _collect(self, digests: dict[str, concurrent.futures.Future[SentTensor]]) -> None:
        for name, digest in digests.items():
            self.sent[name] = digest.result()
        digests.clear()

    def close(self) -> None:
        """Ends the thread; what was begun last is still hashed."""
        self._executor.shutdown(wait=True, cancel_futures=True)


@dataclass(frozen=True, slots=True)
class Verification:
    """verified: true when every rank holds every tensor as sent, None when it cannot be told; then `reason` says why.

    `ignored` names tensors that arrived and that the engine's loader did not know.
    """

    verified: bool | None
    reason: str | None = None
    ignored: tuple[str, ...] = ()


def compare(sent: Mapping[str, SentTensor], weights: Mapping[str, Any] | None) -> Verification:
    """Holds what was sent against a mock's `/mock/weights` (docs/mock-routes.md); None on a server that is no mock.

    Raises DigestMismatch, which names every tensor that a rank lacks, holds otherwise, or does not serve.
    """
    if weights is None:
        return Verification(None, "sent, not verifiable here: the server does not show what it holds")
    found = weights.get("ranks")
    if not isinstance(found, list) or not found:
        return Verification(None, "sent, not verifiable here: the mock lists no ranks")
    by_rank: dict[int, dict[str, str]] = {}
    ignored: set[str] = set()
    unhashed = False
    for position, entry in enumerate(found):
        rank, held = _rank_and_weights(entry, position)
        differing: dict[str, str] = {}
        for name, tensor in sent.items():
            record = held.get(name)
            why = _difference(tensor, record)
            if why is not None:
                differing[name] = why
            elif isinstance(record, dict):
                unhashed |= record.get("sha256") is None
                if record.get("loaded") is False:
                    ignored.add(name)
        if differing:
            by_rank[rank] = differing
    if by_rank:
        raise DigestMismatch(by_rank)
    if unhashed:
        return Verification(None, "sent, not verifiable here: the mock keeps no digests", tuple(sorted(ignored)))
    return Verification(True, None, tuple(sorted(ignored)))


def _digest(tensor: TensorSource, view: memoryview) -> SentTensor:
    return SentTensor(tensor.dtype, tuple(tensor.shape), tensor.nbytes, hashlib.sha256(view).hexdigest())


def _rank_and_weights(entry: object, position: int) -> tuple[int, dict[str, Any]]:
    if not isinstance(entry, dict):
        return position, {}
    rank, weights = entry.get("rank"), entry.get("weights")
    return rank if isinstance(rank, int) else position, weights if isinstance(weights, dict) else {}


def _difference(tensor: SentTensor, record: object) -> str | None:
    """Why a record is not the tensor that was sent, in a few words; None when it is, or keeps no digest."""
    if not isinstance(record, dict):
        return "missing"
    if record.get("origin") != "transfer":
        return "not received, still the checkpoint's"
    for field, expected in (("dtype", tensor.dtype), ("shape", list(tensor.shape)), ("nbytes", tensor.nbytes)):
        if record.get(field) != expected:
            return f"{field} {record.get(field)!r} instead of {expected!r}"[:120]
    digest = record.get("sha256")
    if digest is not None and digest != tensor.sha256:
        return f"sha256 {str(digest)[:12]}… instead of {tensor.sha256[:12]}…"
    if record.get("live") is not True:
        return "received but not live"
    return None
