"""What may be pushed, and what is refused of it before the engine is touched."""

from __future__ import annotations

import ctypes
import struct
from dataclasses import dataclass
from typing import Any

import pytest

from tests.support.arrays import Array
from tests.support.scripted_engine import ScriptedEngine
from vime_sync.errors import SettingError, SyncError, UnsupportedTensor
from vime_sync.pushing import push
from vime_sync.sources import tensors_of
from vime_sync.tensors import read_checked
from vime_sync.timeouts import Timeouts

pytestmark = pytest.mark.unit


@dataclass
class Stated:
    """A source that states whatever a test wants."""

    name: Any = "odd"
    dtype: Any = "float32"
    shape: Any = (2, 3)
    nbytes: Any = 24
    content: Any = bytes(24)

    def read(self) -> Any:
        return self.content


def run(engine: ScriptedEngine, source: Any) -> Any:
    return push(source, "http://127.0.0.1:8000", transport=engine, timeouts=Timeouts(total=10.0, grace=0.5))


@pytest.mark.parametrize(
    ("tensor", "message"),
    [
        (Stated(nbytes=20), "'odd'.*20 bytes where float32 .2, 3. needs 24"),
        (Stated(nbytes=None), "'odd'.*None"),
        (Stated(shape=(-2, -3)), "'odd'.*shape"),
        (Stated(shape=(2.0, 3)), "'odd'.*shape"),
        (Stated(shape=None), "'odd'.*shape"),
        (Stated(dtype=4), "'odd'.*dtype"),
        (Stated(dtype="floaty"), "floaty"),
        (Stated(name="\ud800"), "Unicode"),
        (Stated(name=5), "Unicode"),
        (5, "int is no TensorSource"),
    ],
)
def test_metadata_that_contradicts_itself_is_refused_before_the_pause(tensor: Any, message: str) -> None:
    engine = ScriptedEngine()
    with pytest.raises(UnsupportedTensor, match=message) as caught:
        run(engine, [Array("first"), tensor])
    assert set(engine.routes) <= {"/version", "/get_world_size"}
    assert "\n" not in caught.value.line()


@pytest.mark.parametrize("source", [None, 5, [], {}])
def test_what_holds_no_tensors_is_a_sentence(source: Any) -> None:
    engine = ScriptedEngine()
    with pytest.raises(SettingError, match=r"source: .*no tensors"):
        run(engine, source)
    assert engine.routes == []


def test_a_mapping_of_something_else_names_it() -> None:
    pytest.importorskip("torch")
    with pytest.raises(UnsupportedTensor, match="'a': int is no torch tensor"):
        run(ScriptedEngine(), {"a": 5})


def test_a_mapping_without_torch_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "torch", None)
    with pytest.raises(SettingError, match="torch cannot be imported"), tensors_of({"a": 5}):  # type: ignore[dict-item]
        pass


NUMBERS = struct.pack("6B", 1, 2, 3, 4, 5, 6)


@pytest.mark.parametrize(
    ("content", "flat"),
    [
        (NUMBERS, NUMBERS),
        (bytearray(NUMBERS), NUMBERS),
        (memoryview(NUMBERS).cast("B", (2, 3)), NUMBERS),
        (memoryview(NUMBERS + NUMBERS)[::2], bytes([1, 3, 5, 1, 3, 5])),
        (memoryview((ctypes.c_uint16 * 3)(1, 2, 3)), struct.pack("<3H", 1, 2, 3)),
    ],
)
def test_bytes_of_any_kind_are_read_flat(content: Any, flat: bytes) -> None:
    view = read_checked(Stated(dtype="uint8", shape=(6,), nbytes=6, content=content))
    assert bytes(view) == flat
    assert (view.format, view.ndim, view.c_contiguous) == ("B", 1, True)


def test_no_bytes_in_several_dimensions_are_no_bytes() -> None:
    numpy = pytest.importorskip("numpy")
    empty = Stated(shape=(0, 3), nbytes=0, content=numpy.zeros((0, 3), "float32").data)
    assert bytes(read_checked(empty)) == b""


@pytest.mark.parametrize("content", [None, [1, 2], "text"])
def test_what_is_no_bytes_is_refused_by_name(content: Any) -> None:
    with pytest.raises(UnsupportedTensor, match=r"'odd': read\(\) gave (NoneType|list|str)") as caught:
        read_checked(Stated(content=content))
    assert caught.value.tensor == "odd"
    with pytest.raises(SyncError) as pushed:
        run(ScriptedEngine(), [Stated(content=content)])
    assert "'odd'" in pushed.value.line()
    assert pushed.value.state


def test_a_released_view_is_refused_by_name() -> None:
    view = memoryview(bytes(24))
    view.release()
    with pytest.raises(UnsupportedTensor, match="'odd'.*unusable"):
        read_checked(Stated(content=view))


def test_bytes_are_pushed_as_they_are() -> None:
    engine = ScriptedEngine()
    content = bytearray(range(24))
    assert run(engine, [Stated(content=content)]).verified is True
