"""When elementwise functions are called often, they call machine code.

The first calls are Python's: to load the code takes 5 ms. Where it is not kept on disk
yet, it is compiled after more of them, in 0.2 s. From Python 3.12 on it is called in
the functions' place, with all that is Python's of them unchanged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

from xdev._forks import module_lock

if TYPE_CHECKING:
    from collections.abc import Callable

    from xdev.compile.quick_function import QuickFunctions

CALLS, CALLS_TO_COMPILE = 2_000, 20_000  # of all functions together
_lock = module_lock()


@final
class Quickening:
    """The elementwise functions, and how many calls they have to go.

    Attributes
    ----------
    left : int
        The calls.
    functions : QuickFunctions or None
        What made the machine code, once it is there.
    """

    def __init__(self) -> None:
        self.left = CALLS
        self.functions: QuickFunctions | None = None
        self._waited = False  # once already
        self._joined: list[tuple[Any, ...]] = []
        self._kinds: dict[type, Callable[[str], Any]] = {}

    def join(
        self,
        function: Any,
        general: Callable[..., Any],
        numpys: Callable[..., Any],
        *,
        reals: bool = False,
    ) -> None:
        """Count the calls of a function; one day let it call machine code.

        Parameters
        ----------
        function : function
            Its code is a call of its free variable ``call``, with ``out`` at the end.
        general : callable
            What that is to do.
        numpys : callable
            What computes NumPy's arrays.
        reals : bool
            Whether it does so for real floats alone.
        """
        cell = function.__closure__[function.__code__.co_freevars.index("call")]
        self._joined.append((cell, function, general, numpys, reals))

        def counting(*args: Any) -> Any:
            self.left -= 1
            if self.left < 0:
                self._come()
            return general(*args)

        cell.cell_contents = counting

    def serve(self, kind: type, find: Callable[[str], Any]) -> None:
        """Serve arrays of a type, all of one device: by what is found for a name."""
        with _lock:
            self._kinds[kind] = find
            if self.functions is not None:
                self.functions.serve(kind, find)

    def _come(self) -> None:
        """Let the functions call machine code, or wait for more calls."""
        waited, self._waited, self.left = self._waited, True, CALLS_TO_COMPILE
        try:
            from xdev.compile import quick_function_code

            if waited or quick_function_code.kept() is not None:
                self.quicken()
        except Exception:  # noqa: BLE001 - whose call it is did not ask for any of this
            for cell, _, general, *_ in self._joined:
                cell.cell_contents = general

    def quicken(self) -> None:
        """Let the functions call machine code from now on."""
        with _lock:
            if self.functions is not None:
                return
            from xdev.compile.quick_function import QuickFunctions
            from xdev.facade.libraries import HOST_SCALARS, PYTHON_SCALARS

            made = QuickFunctions(PYTHON_SCALARS, HOST_SCALARS)
            for cell, function, general, numpys, reals in self._joined:
                cell.cell_contents = made.make(function, general, numpys, reals=reals)
            for kind, find in self._kinds.items():
                made.serve(kind, find)
            self.functions = made


QUICKENING = Quickening()
