"""Transfers: explicit copies between devices, pinned memory, and whole structures."""

from xdev.transfer.adaptation import adapt, cu
from xdev.transfer.batching import batches
from xdev.transfer.copies import to_device, to_numpy, transfer_guard
from xdev.transfer.pinned import empty_pinned, is_pinned, pin

__all__ = [
    "adapt", "batches", "cu", "empty_pinned", "is_pinned", "pin", "to_device",
    "to_numpy", "transfer_guard",
]  # fmt: skip
__dir__ = __all__.copy  # what Tab shows
