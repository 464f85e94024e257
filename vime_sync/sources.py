"""What may be pushed: a path, an open checkpoint, torch tensors by name, or TensorSources."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from vime_sync.checkpoint import Checkpoint, open_checkpoint
from vime_sync.errors import SettingError
from vime_sync.tensors import TensorSource, from_torch

if TYPE_CHECKING:
    import torch

Source = str | Path | Checkpoint | Mapping[str, "torch.Tensor"] | Iterable[TensorSource]


@contextlib.contextmanager
def tensors_of(source: Source) -> Iterator[list[TensorSource]]:
    """The tensors of a source, for as long as the context lasts. A checkpoint that was opened here is closed after it.

    Raises CheckpointError, and SettingError when there is nothing to send.
    """
    with contextlib.ExitStack() as stack:
        tensors: list[TensorSource]
        if isinstance(source, (str, Path)):
            tensors = list(stack.enter_context(open_checkpoint(source)))
        elif isinstance(source, Mapping):
            tensors = list(from_torch(source))
        else:
            tensors = list(source)
        if not tensors:
            raise SettingError("source", "holds no tensors: there is nothing to send")
        yield tensors
