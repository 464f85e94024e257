"""A checkpoint on disk: one safetensors file, shards with their index, or a directory that holds either."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from types import TracebackType
from typing import Any

from vime_sync.errors import BrokenHeader, CheckpointError, MissingFile
from vime_sync.regular_files import open_regular
from vime_sync.safetensors_file import SafetensorsEntry, SafetensorsFile

INDEX_SUFFIX = ".safetensors.index.json"
SINGLE_FILE = "model.safetensors"
_LARGEST_INDEX = 256 << 20


class Checkpoint:
    """Tensors from one or more mapped files. Iterating gives them in file order. A context manager.

    path      what was opened
    files     the safetensors files behind it
    tensors   every tensor, as a TensorSource
    nbytes    bytes of all tensors
    unlisted  names that a shard holds and the index does not list; they are not part of the checkpoint
    """

    def __init__(self, path: Path, files: list[SafetensorsFile], tensors: list[SafetensorsEntry]) -> None:
        self.path = path
        self.files = files
        self.tensors = tensors
        self.nbytes = sum(tensor.nbytes for tensor in tensors)
        listed = {tensor.name for tensor in tensors}
        self.unlisted = sorted({name for file in files for name in file.entries} - listed)

    def __enter__(self) -> Checkpoint:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __iter__(self) -> Iterator[SafetensorsEntry]:
        return iter(self.tensors)

    def __len__(self) -> int:
        return len(self.tensors)

    def close(self) -> None:
        """Lets the mappings go."""
        for file in self.files:
            file.close()


def open_checkpoint(path: str | Path) -> Checkpoint:
    """Opens a `.safetensors` file, a `.safetensors.index.json`, or a directory with `model.safetensors` or one index.

    Raises MissingFile, BrokenHeader, UnsupportedTensor or CheckpointError; nothing stays open then.
    """
    chosen = _chosen(Path(path))
    if chosen.name.endswith(INDEX_SUFFIX):
        checkpoint = _sharded(Path(path), chosen)
    else:
        file = SafetensorsFile(chosen)
        checkpoint = Checkpoint(Path(path), [file], list(file.entries.values()))
    if not checkpoint.tensors:
        checkpoint.close()
        raise CheckpointError(str(chosen), "holds no tensors", next_step="check that this is the file to push")
    return checkpoint


def _chosen(path: Path) -> Path:
    """The file that `path` means."""
    if not path.is_dir():
        if path.name.endswith((".bin", ".pt", ".pth", ".ckpt", ".gguf")):
            advice = "save it as safetensors"
            raise CheckpointError(str(path), "only safetensors checkpoints can be pushed", next_step=advice)
        return path
    indexes = sorted(path.glob(f"*{INDEX_SUFFIX}"))
    singles = sorted(path.glob("*.safetensors"))
    single = path / SINGLE_FILE
    if single in singles and not indexes:
        return single
    if len(indexes) == 1 and single not in singles:
        return indexes[0]
    if not indexes and len(singles) == 1:
        return singles[0]
    if not indexes and not singles:
        advice = "give a safetensors file, or the directory that holds one"
        raise MissingFile(str(path), f"holds neither {SINGLE_FILE} nor an index of shards", next_step=advice)
    names = ", ".join(file.name for file in [*indexes, *singles][:4])
    raise CheckpointError(str(path), f"holds several checkpoints ({names} …)", next_step="name the file to push")


def _sharded(path: Path, index: Path) -> Checkpoint:
    weight_map = _weight_map(index)
    files: dict[str, SafetensorsFile] = {}
    try:
        for shard in sorted(set(weight_map.values())):
            files[shard] = SafetensorsFile(_shard_path(index, shard))
        tensors = []
        for name, shard in weight_map.items():
            entry = files[shard].entries.get(name)
            if entry is None:
                raise _broken(index, f"is said to be in {shard}, which does not hold it", name)
            tensors.append(entry)
    except CheckpointError:
        for file in files.values():
            file.close()
        raise
    return Checkpoint(path, list(files.values()), tensors)


def _shard_path(index: Path, shard: str) -> Path:
    """Where a shard lies. A name that leaves the index's directory is refused; symbolic links are the user's own."""
    relative = PurePosixPath(shard)
    if relative.is_absolute() or ".." in relative.parts or not shard:
        raise _broken(index, f"names a shard outside its directory: {shard[:200]!r}")
    found = index.parent / relative
    if not found.exists():
        advice = "download the shard, or write the checkpoint again"
        raise MissingFile(str(found), f"no such file, though {index.name} names it", next_step=advice)
    return found


def _weight_map(index: Path) -> dict[str, str]:
    """Tensor name → shard name. Raises MissingFile, BrokenHeader."""

    def no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, value in pairs:
            if name in found:
                raise _broken(index, f"names {name!r} twice")
            found[name] = value
        return found

    try:
        with open_regular(index) as opened:
            text = opened.read(_LARGEST_INDEX + 1)
        if len(text) > _LARGEST_INDEX:
            raise _broken(index, "is too large for an index")
        found = json.loads(text.decode("utf-8"), object_pairs_hook=no_duplicates)
    except OSError as error:
        raise CheckpointError(str(index), f"cannot be read ({error.strerror or error})") from None
    except (ValueError, RecursionError) as error:
        raise _broken(index, f"is not JSON ({error})") from None
    weight_map = found.get("weight_map") if isinstance(found, dict) else None
    if not isinstance(weight_map, dict) or not all(isinstance(shard, str) for shard in weight_map.values()):
        raise _broken(index, "has no `weight_map` of names to files")
    return weight_map


def _broken(index: Path, why: str, tensor: str | None = None) -> BrokenHeader:
    return BrokenHeader(str(index), why, tensor=tensor, next_step="write or download the checkpoint again")
