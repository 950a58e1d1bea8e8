"""``@guvectorize``: functions of core arrays, along loop dimensions that broadcast."""

from xdev.ufunc.generalized.ufuncs import Generalized, guvectorize

__all__ = ["Generalized", "guvectorize"]
