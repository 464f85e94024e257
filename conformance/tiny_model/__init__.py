"""A random two-layer Qwen3 of 140,000 parameters, written without torch: the model that the suite serves and pushes."""

from conformance.tiny_model.files import write
from conformance.tiny_model.weights import CHECKPOINTS, tensors

__all__ = ["CHECKPOINTS", "tensors", "write"]
