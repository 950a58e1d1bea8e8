"""When elementwise functions are called often, functions call machine code.

The first calls are Python's: to load the code takes 5 ms. Where it is not kept on disk
yet, it is compiled after more of them, in 0.2 s. From Python 3.12 on it is called in
the functions' place, with all that is Python's of them unchanged. Where another library
than NumPy is served, it then hands arrays on in the place of other functions too
(:mod:`xdev.facade.handing`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

from xdev._forks import module_lock
from xdev.facade.handing import ARRAYS, LEFT_OUT, MEANT_BY_NONE, TRANSLATED

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

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
        self._handing: dict[str, Any] = {}  # functions that are Python's yet
        self._kinds: dict[type, Mapping[str, Any]] = {}

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

    def join_handing(self, functions: Mapping[str, Any], room: str = "") -> None:
        """Let functions that hand arrays on do so by machine code one day.

        Parameters
        ----------
        functions : mapping
            Functions by name, those of :data:`xdev.facade.handing.ARRAYS` among them.
        room : {"", "fft", "linalg"}
            Where in the standard they are.
        """
        with _lock:
            for name in ARRAYS:
                place, _, short = name.rpartition(".")
                if place == room:
                    self._handing[name] = functions[short]
            self.hand_on()

    def serve(self, kind: type, functions: Mapping[str, Any]) -> None:
        """Serve arrays of a type, all of one device, by a library's functions."""
        with _lock:
            self._kinds[kind] = functions
            if self.functions is not None:
                self.functions.serve(kind, functions)
            self.hand_on()

    def hand_on(self) -> None:
        """Let functions hand arrays on by machine code, if they did so before.

        The others stay as they are: it adds 30 ns to their calls with NumPy's arrays.
        """
        with _lock:
            if self.functions is None:
                return
            for theirs in self._kinds.values():
                for name in [name for name in self._handing if name in theirs]:
                    function = self._handing.pop(name)
                    known = function.__kwdefaults__ or {}
                    defaults = {key: known[key] for key in known if key not in LEFT_OUT}
                    self.functions.hand_on(
                        *(name, function, theirs[name]),
                        arrays=ARRAYS[name],
                        defaults=defaults,
                        given=defaults.keys() - TRANSLATED,
                        nones=MEANT_BY_NONE,
                    )

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
            for kind, functions in self._kinds.items():
                made.serve(kind, functions)
            self.functions = made
            self.hand_on()


QUICKENING = Quickening()
