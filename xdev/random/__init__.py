"""Random values: NumPy's generators, with the same values on every device."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from xdev._numpy_names import refuse
from xdev.random.draws import Philox
from xdev.random.generator import Generator, default_rng

__all__ = ["Generator", "Philox", "default_rng"]
__dir__ = __all__.copy  # what Tab shows

if not TYPE_CHECKING:  # type checkers know what is there
    __getattr__ = partial(refuse, __name__)  # says what does the same as NumPy's
