"""NumPy's random numbers, on the default device: ``xdev.numpy.random``.

The numbers are NumPy's own, drawn on the host and copied to the default device, so that
a program with a seed has the same ones wherever it runs. :mod:`xdev.random` draws on
the device itself, with the same numbers on every device too, but not NumPy's.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from xdev._numpy_names import drawn
from xdev.numpy.dispatch import arrays_in, on_default_device

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [name for name in np.random.__all__ if name != "test"]


def _drawing(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of NumPy's whose arrays are put on the default device."""

    @functools.wraps(function)
    def draw(*args: Any, **options: Any) -> Any:
        for _, x in arrays_in((*args, *options.values())):
            if type(x) is not np.ndarray:
                raise TypeError(
                    f"xdev.numpy.random.{name} draws on the host, as NumPy does, and "
                    f"got an array ({type(x).__name__}) of another device: copy it "
                    f"with xdev.to_numpy(x){drawn(name)}"
                )
        result = function(*args, **options)
        return result if result is options.get("out") else on_default_device(result)

    return draw


class _Draws:
    """A generator of NumPy's, whose arrays are put on the default device."""

    _kind: Callable[..., Any]

    def __init__(self, *args: Any, **options: Any) -> None:
        self._generator = self._kind(*args, **options)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        value = getattr(self._generator, name)
        if not callable(value):
            return value
        return _drawing(name, value)

    def __dir__(self) -> list[str]:
        return dir(self._generator)

    def __repr__(self) -> str:
        return f"xdev.numpy.random.{self._generator!r}"


class Generator(_Draws):
    """As ``numpy.random.Generator``."""

    _kind = np.random.Generator

    def spawn(self, n_children: int) -> list[Generator]:
        """As ``numpy.random.Generator.spawn``."""
        return list(map(_around, self._generator.spawn(n_children)))


class RandomState(_Draws):
    """As ``numpy.random.RandomState``."""

    _kind = np.random.RandomState


def _around(generator: np.random.Generator) -> Generator:
    return Generator(generator.bit_generator)


def default_rng(seed: Any = None) -> Generator:
    """As ``numpy.random.default_rng``, whose numbers it draws.

    Examples
    --------
    >>> import numpy
    >>> import xdev.numpy as np
    >>> wanted = numpy.random.default_rng(1).integers(10)
    >>> np.random.default_rng(1).integers(10) == wanted
    np.True_
    """
    if isinstance(seed, Generator):
        return seed
    return _around(np.random.default_rng(seed))


def __getattr__(name: str) -> Any:
    value = getattr(np.random, name)
    if name.startswith("_") or isinstance(value, type) or not callable(value):
        return value
    globals()[name] = drawing = _drawing(name, value)
    return drawing


def __dir__() -> list[str]:
    return __all__
