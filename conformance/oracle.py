"""Whether what a server says it received is what was sent, byte for byte."""

from __future__ import annotations

from collections.abc import Sequence

from conformance.targets.base import ReceivedTensor
from conformance.tensor import Tensor


def differences(expected: Sequence[Tensor], received: Sequence[dict[str, ReceivedTensor]], exactly: bool) -> list[str]:
    """One line for each tensor that differs, on any worker; with ``exactly``, also for each that nobody expects.

    ``received`` holds one mapping a worker. No worker at all is a difference too: nothing was shown.
    """
    found = [] if received else ["the server lists no worker"]
    for rank, held in enumerate(received):
        for tensor in expected:
            got = held.get(tensor.name)
            if got is None:
                found.append(f"worker {rank} did not receive {tensor.name}")
                continue
            wanted = (tensor.dtype, tensor.shape, tensor.nbytes)
            if (got.dtype, got.shape, got.nbytes) != wanted:
                found.append(
                    f"worker {rank} holds {tensor.name} as {got.dtype}{list(got.shape)} of {got.nbytes} bytes, "
                    f"sent {tensor.dtype}{list(tensor.shape)} of {tensor.nbytes}"
                )
            elif got.sha256 != tensor.sha256:
                found.append(f"worker {rank} holds other bytes of {tensor.name}: {got.sha256}, sent {tensor.sha256}")
        if exactly:
            names = {tensor.name for tensor in expected}
            found += [f"worker {rank} received {name}, which was not sent" for name in held if name not in names]
    return found


def not_in_use(expected: Sequence[Tensor], received: Sequence[dict[str, ReceivedTensor]]) -> list[str]:
    """One line for each expected tensor that a server which tells shows as not held, or as not in use yet."""
    found = []
    for rank, held in enumerate(received):
        for tensor in expected:
            got = held.get(tensor.name)
            if got is None:
                continue
            if got.held_sha256 not in (None, tensor.sha256):
                found.append(f"worker {rank} received {tensor.name} but holds other bytes: {got.held_sha256}")
            elif got.live is False:
                found.append(f"worker {rank} does not use {tensor.name} yet")
    return found
