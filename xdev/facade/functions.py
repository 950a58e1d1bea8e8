"""A library's functions by the standard's names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class Functions(dict[str, Any]):
    """Functions by name, each found at its first use: ``numpy.fft`` loads late.

    Parameters
    ----------
    find : callable
        Gives the function of a name.
    known : mapping, optional
        Those that are found already.
    """

    __slots__ = ("_find",)

    def __init__(
        self,
        find: Callable[[str], Callable[..., Any]],
        known: Mapping[str, Callable[..., Any]] = {},
    ) -> None:
        super().__init__(known)
        self._find = find

    def __missing__(self, name: str) -> Any:
        # What is there by now counts: CuPy's functions may be marked meanwhile.
        return self.setdefault(name, self._find(name))
