"""The torch dtypes that can appear in `dtype_names`, without torch.

`getattr(torch, name)` decides what a name means in vLLM; NCCL's own list decides what can travel unpacked
(vLLM 0.21.0, `vllm.distributed.device_communicators.pynccl_wrapper.ncclDataTypeEnum`).
"""

from __future__ import annotations

from dataclasses import dataclass

from mock_vllm.errors import WorkerError


@dataclass(frozen=True)
class DType:
    """A torch dtype: canonical name, bytes per element, whether NCCL has it, its legacy tensor name in error texts."""

    name: str
    itemsize: int
    in_nccl: bool = False
    scalar: str = ""

    def __str__(self) -> str:
        return f"torch.{self.name}"


_DTYPES = [
    DType("float16", 2, in_nccl=True, scalar="Half"),
    DType("bfloat16", 2, in_nccl=True, scalar="BFloat16"),
    DType("float32", 4, in_nccl=True, scalar="Float"),
    DType("float64", 8, in_nccl=True, scalar="Double"),
    DType("int8", 1, in_nccl=True, scalar="Char"),
    DType("uint8", 1, in_nccl=True, scalar="Byte"),
    DType("int32", 4, in_nccl=True, scalar="Int"),
    DType("int64", 8, in_nccl=True, scalar="Long"),
    DType("float8_e4m3fn", 1, in_nccl=True, scalar="Float8_e4m3fn"),
    DType("int16", 2, scalar="Short"),
    DType("uint16", 2, scalar="UInt16"),
    DType("uint32", 4, scalar="UInt32"),
    DType("uint64", 8, scalar="UInt64"),
    DType("bool", 1, scalar="Bool"),
    DType("complex32", 4, scalar="ComplexHalf"),
    DType("complex64", 8, scalar="ComplexFloat"),
    DType("complex128", 16, scalar="ComplexDouble"),
    DType("float8_e5m2", 1, scalar="Float8_e5m2"),
    DType("float8_e4m3fnuz", 1, scalar="Float8_e4m3fnuz"),
    DType("float8_e5m2fnuz", 1, scalar="Float8_e5m2fnuz"),
    DType("float8_e8m0fnu", 1, scalar="Float8_e8m0fnu"),
]
_ALIASES = {
    "half": "float16",
    "float": "float32",
    "double": "float64",
    "short": "int16",
    "int": "int32",
    "long": "int64",
    "chalf": "complex32",
    "cfloat": "complex64",
    "cdouble": "complex128",
}
BY_NAME = {dtype.name: dtype for dtype in _DTYPES}
BY_NAME |= {alias: BY_NAME[name] for alias, name in _ALIASES.items()}

TORCH_MODULES = ("nn", "cuda", "optim", "linalg", "fft", "utils", "distributed", "autograd", "jit", "_C")
"""Names that torch has and that are no dtypes: the likeliest of many."""

SAFETENSORS_NAMES = {
    "F16": "float16",
    "BF16": "bfloat16",
    "F32": "float32",
    "F64": "float64",
    "I8": "int8",
    "U8": "uint8",
    "I16": "int16",
    "U16": "uint16",
    "I32": "int32",
    "U32": "uint32",
    "I64": "int64",
    "U64": "uint64",
    "BOOL": "bool",
    "C64": "complex64",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2",
    "F8_E8M0": "float8_e8m0fnu",
}
"""safetensors' names of the same types (the format's documentation)."""


def find_dtype(name: object) -> DType:
    """Return what `getattr(torch, name)` would.

    Raises:
        WorkerError: torch has no such attribute, or the name is not a string; worded as Python does.
    """
    if not isinstance(name, str):
        raise WorkerError(f"attribute name must be string, not '{type(name).__name__}'")
    if name in TORCH_MODULES:
        raise WorkerError(f"module 'torch.{name}' has no attribute 'itemsize'")
    try:
        return BY_NAME[name]
    except KeyError:
        raise WorkerError(f"module 'torch' has no attribute '{name}'") from None
