"""NumPy's ``numpy.linalg``, on the arrays of every library: ``xdev.numpy.linalg``."""

from __future__ import annotations

from xdev.numpy.names import room

__all__, __getattr__, __dir__ = room("linalg")
