"""``@guvectorize``: functions of core arrays, along loop dimensions that broadcast."""

from xdev.ufunc.generalized.decorator import guvectorize
from xdev.ufunc.generalized.ufuncs import Generalized

__all__ = ["Generalized", "guvectorize"]
