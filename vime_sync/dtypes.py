"""Names and sizes of element types: safetensors' on the left, torch's attribute names on the right."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Dtype:
    """An element type. `name` is torch's attribute name (`bfloat16`), `item_size` in bytes.

    `byte_sized` is false for types whose elements are smaller than a byte: they have no bytes of their own to send.
    """

    name: str
    item_size: int
    byte_sized: bool = True


_BY_SAFETENSORS_NAME = {
    "BOOL": Dtype("bool", 1),
    "U8": Dtype("uint8", 1),
    "I8": Dtype("int8", 1),
    "F8_E4M3": Dtype("float8_e4m3fn", 1),
    "F8_E5M2": Dtype("float8_e5m2", 1),
    "F8_E4M3FNUZ": Dtype("float8_e4m3fnuz", 1),
    "F8_E5M2FNUZ": Dtype("float8_e5m2fnuz", 1),
    "F8_E8M0": Dtype("float8_e8m0fnu", 1),
    "I16": Dtype("int16", 2),
    "U16": Dtype("uint16", 2),
    "F16": Dtype("float16", 2),
    "BF16": Dtype("bfloat16", 2),
    "I32": Dtype("int32", 4),
    "U32": Dtype("uint32", 4),
    "F32": Dtype("float32", 4),
    "I64": Dtype("int64", 8),
    "U64": Dtype("uint64", 8),
    "F64": Dtype("float64", 8),
    "C64": Dtype("complex64", 8),
}
# safetensors packs their elements below a byte, which torch's only such type (`float4_e2m1fn_x2`) counts otherwise.
SUB_BYTE_NAMES = frozenset({"F4", "F6_E2M3", "F6_E3M2"})

_BY_TORCH_NAME = {dtype.name: dtype for dtype in (*_BY_SAFETENSORS_NAME.values(), Dtype("complex128", 16))}
_BY_TORCH_NAME["float4_e2m1fn_x2"] = Dtype("float4_e2m1fn_x2", 1, byte_sized=False)


def from_safetensors(name: str) -> Dtype | None:
    """The type behind a safetensors name such as `BF16`, or None when it is unknown or smaller than a byte."""
    return _BY_SAFETENSORS_NAME.get(name)


def from_torch_name(name: str) -> Dtype | None:
    """The type behind a torch attribute name such as `bfloat16`, or None when it is unknown."""
    return _BY_TORCH_NAME.get(name)
