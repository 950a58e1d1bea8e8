"""Graphs where there is nothing to capture: a replay calls the function."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, NoReturn, final

import numpy as np

from xdev.errors import CaptureError
from xdev.ufunc import foreign
from xdev.ufunc.graphs.results import (
    check_alive,
    check_arrays,
    form,
    leaves,
    name_of,
    rebuild,
)

if TYPE_CHECKING:
    from collections.abc import Callable


@final
class HostGraph:
    """A function and its arguments; results stay where the first replay put them.

    Parameters
    ----------
    f : callable
        The function.
    arrays : tuple
        Its arguments.
    found : list of arrays
        The arrays in them.
    """

    def __init__(
        self, f: Callable[..., Any], arrays: tuple[Any, ...], found: list[Any]
    ) -> None:
        self._f, self._arrays, self._found = f, arrays, found
        self._lock = threading.Lock()  # guards the results
        self._results: Any = None
        self._kept: list[Any] = []  # the arrays in them
        self._form: Any = None
        self._first = True

    def __call__(self) -> Any:
        """Call the function; return the arrays that hold what it returned."""
        name = name_of(self._f)
        check_alive(name, self._found)
        check_alive(name, self._kept, "a result")
        made = self._f(*self._arrays)
        check_arrays(name, made)
        with self._lock:
            if self._first:
                for x in leaves(made):
                    foreign.claim(x, f"the graph of {name}")
                self._results = rebuild(_kept, made)
                self._kept = leaves(self._results)
                self._form = form(made)
                self._first = False
                return self._results
            if form(made) != self._form:
                message = (
                    f"{name} returned {form(made)}, after {self._form} when it was "
                    "first replayed: a graph's results keep their shapes and dtypes"
                )
                raise CaptureError(message)
            for kept, new in zip(self._kept, leaves(made), strict=True):
                if new is not kept:
                    kept[...] = new
        return self._results

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a graph works on arrays of this process, so it cannot be pickled: pickle "
            "its function, and make another there"
        )

    def __repr__(self) -> str:
        return f"<xdev graph of {name_of(self._f)}>"


def _kept(x: Any) -> Any:
    """Return an array that later replays can write to."""
    return np.asarray(x) if isinstance(x, np.generic) else x
