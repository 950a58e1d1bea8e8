"""NumPy's ``numpy.fft``, on the arrays of every library: ``xdev.numpy.fft``."""

from __future__ import annotations

from xdev.numpy.names import room

__all__, __getattr__, __dir__ = room("fft")
