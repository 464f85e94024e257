"""CUDA streams that do nothing: on a CPU every operation is done when its call returns."""

from __future__ import annotations

import contextlib
from typing import Any

import torch


class NoStream:
    """Has the methods of `torch.cuda.Stream` that vLLM's transfer code calls."""

    cuda_stream = 0

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Takes what `torch.cuda.Stream` takes."""

    def synchronize(self) -> None:
        """Nothing is ever pending."""

    def wait_stream(self, other: object) -> None:
        """Nothing is ever pending."""

    def record_event(self, event: object = None) -> object:
        """Gives the event back."""
        return event


def install() -> None:
    """Put the stand-ins into `torch.cuda`. To be repeated before each use: a release's CPU model runner (seen in
    0.25.1) puts a stream of its own there, which has no `synchronize`.
    """
    cuda: Any = torch.cuda
    cuda.Stream = NoStream
    cuda.stream = lambda _stream: contextlib.nullcontext()
    cuda.current_stream = lambda _device=None: NoStream()
