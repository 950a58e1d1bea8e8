"""Counts that users give: whole numbers of any library, taken as Python's own."""

from __future__ import annotations

from contextlib import suppress
from operator import index
from typing import SupportsIndex


def whole(count: object, name: str, least: int = 1) -> int:
    """Return a count as an ``int``, which a record can hold.

    Parameters
    ----------
    count : int
        Python's, NumPy's or any other that says it is one (``__index__``).
    name : str
        What the message calls it.
    least : int
        The smallest that is allowed.

    Raises
    ------
    ValueError
        It is no whole number, or less.

    Examples
    --------
    >>> import numpy as np
    >>> whole(np.int64(3), "number")
    3
    """
    if isinstance(count, SupportsIndex) and not isinstance(count, bool):
        with suppress(TypeError):  # of arrays, which may have no index
            found = index(count)
            if found >= least:
                return found
    raise ValueError(
        f"{name} must be a whole number of at least {least}, not {count!r}"
    )


def checked_counts(number: int | None, repeat: int) -> tuple[int | None, int]:
    """Return the calls of a run, if they are given, and the runs."""
    return None if number is None else whole(number, "number"), whole(repeat, "repeat")
