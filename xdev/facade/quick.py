"""When elementwise functions are called often, they become machine code.

The first calls are Python's: a program that makes few needs no code to be loaded, and
the first on a machine, which compiles it (0.1 s), none at all.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, final

if TYPE_CHECKING:
    from collections.abc import Callable

    from xdev.compile.quick_function import QuickFunctions

CALLS = 10_000  # of all functions together; until then they cost what loading does


@final
class Quickening:
    """The elementwise functions, and how many calls they have to go.

    Attributes
    ----------
    left : int
        The calls.
    functions : QuickFunctions or None
        The functions, once they are machine code.
    """

    def __init__(self) -> None:
        self.left = CALLS
        self.functions: QuickFunctions | None = None
        self._joined: list[tuple[Any, ...]] = []
        self._kinds: dict[type, Callable[[str], Any]] = {}
        self._lock = threading.Lock()

    def join(self, function: Any, nin: int, *, reals: bool = False) -> None:
        """Count the calls of a function, and make it machine code with the others.

        Parameters
        ----------
        function : function
            Of ``nin`` arguments by position, which hands NumPy's arrays to its free
            variable ``numpys``.
        nin : int
            1 or 2.
        reals : bool
            Whether it hands over real floats alone.
        """
        place = function.__code__.co_freevars.index("numpys")
        cell = function.__closure__[place]
        numpys = cell.cell_contents
        self._joined.append((function, nin, reals, cell, numpys))

        def counting(*args: Any, **keywords: Any) -> Any:
            self.left -= 1
            if self.left < 0:
                self.quicken()
            return numpys(*args, **keywords)

        cell.cell_contents = counting

    def serve(self, kind: type, find: Callable[[str], Any]) -> None:
        """Serve arrays of a type, all of one device: by what is found for a name."""
        self._kinds[kind] = find
        if self.functions is not None:
            self.functions.add_kind(kind, find)

    def quicken(self) -> None:
        """Make the functions machine code, once."""
        with self._lock:
            if self.functions is not None:
                return
            from xdev.compile.quick_function import QuickFunctions
            from xdev.facade.libraries import HOST_SCALARS, PYTHON_SCALARS

            made = QuickFunctions(PYTHON_SCALARS, HOST_SCALARS)
            for function, nin, reals, cell, numpys in self._joined:
                made.add(function, nin, numpys, reals=reals)
                cell.cell_contents = numpys
            for kind, find in self._kinds.items():
                made.add_kind(kind, find)
            self.functions = made


QUICKENING = Quickening()
