"""Random values: NumPy's generators, with the same values on every device."""

from xdev.random.bits import Philox
from xdev.random.generator import Generator, default_rng

__all__ = ["Generator", "Philox", "default_rng"]
