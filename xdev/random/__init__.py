"""Random values: NumPy's generators, with the same values on every device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from xdev.random.draws import Philox
from xdev.random.generator import Generator, default_rng

__all__ = ["Generator", "Philox", "default_rng"]
__dir__ = __all__.copy  # what Tab shows

if not TYPE_CHECKING:  # type checkers know what is there

    def __getattr__(name: str) -> Any:
        """Say what does the same as a name of NumPy's."""
        from xdev._numpy_names import missing

        raise missing(__name__, name)
