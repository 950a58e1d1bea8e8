"""A map in the order of its keys, for what must be found by "the next one from here".

Keys lie in *runs*: sorted lists, short enough that an insertion moves little. So a
change costs two binary searches and a move of at most a run and the list of runs; with
100,000 keys that is one to two orders of magnitude less than one long list moves.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from typing import TYPE_CHECKING, Any, Generic, TypeVar, final

if TYPE_CHECKING:
    from collections.abc import Iterator

K = TypeVar("K", bound=Any)
V = TypeVar("V")
RUN = 512  # a run of twice as many keys is cut in halves


@final
class Ordered(Generic[K, V]):
    """Values by keys that can be compared; a key is here once.

    Examples
    --------
    >>> starts = Ordered()
    >>> for key in (30, 10, 20):
    ...     starts.add(key, f"from {key}")
    >>> starts.floor(25), starts.ceiling(25), starts.floor(5)
    ('from 20', 'from 30', None)
    >>> starts.pop(20), list(starts), len(starts)
    ('from 20', ['from 10', 'from 30'], 2)
    """

    __slots__ = ("_lasts", "_runs", "_values")

    def __init__(self) -> None:
        self._values: dict[K, V] = {}
        self._runs: list[list[K]] = []  # none is empty
        self._lasts: list[K] = []  # each run's last key

    def add(self, key: K, value: V) -> None:
        """Put a value at a key; where the key is here, in place of its value."""
        if key not in self._values:
            self._insert(key)
        self._values[key] = value

    def pop(self, key: K) -> V:
        """Remove a key and return its value; KeyError where it is not here."""
        value = self._values.pop(key)
        at = bisect_left(self._lasts, key)
        run = self._runs[at]
        place = bisect_left(run, key)
        del run[place]
        if not run:
            del self._runs[at], self._lasts[at]
        elif place == len(run):
            self._lasts[at] = run[-1]
        return value

    def get(self, key: K) -> V | None:
        """Return the value of a key, or None."""
        return self._values.get(key)

    def floor(self, key: K) -> V | None:
        """Return the value of the last key up to this one, or None."""
        at = bisect_right(self._lasts, key)
        if at < len(self._runs) and self._runs[at][0] <= key:
            run = self._runs[at]
            return self._values[run[bisect_right(run, key) - 1]]
        return self._values[self._lasts[at - 1]] if at else None

    def ceiling(self, key: K) -> V | None:
        """Return the value of the first key from this one on, or None."""
        at = bisect_left(self._lasts, key)
        if at == len(self._runs):
            return None
        run = self._runs[at]
        return self._values[run[bisect_left(run, key)]]

    def _insert(self, key: K) -> None:
        runs, lasts = self._runs, self._lasts
        at = bisect_left(lasts, key)
        if at == len(runs):  # beyond the last key
            if not runs:
                runs.append([key])
                lasts.append(key)
                return
            at -= 1
            lasts[at] = key
        run = runs[at]
        insort(run, key)
        if len(run) == 2 * RUN:
            runs[at : at + 1] = [run[:RUN], run[RUN:]]
            lasts.insert(at, run[RUN - 1])

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[V]:
        for run in self._runs:
            for key in run:
                yield self._values[key]

    def __reversed__(self) -> Iterator[V]:
        for run in reversed(self._runs):
            for key in reversed(run):
                yield self._values[key]
