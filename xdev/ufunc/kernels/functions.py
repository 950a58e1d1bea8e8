"""The function of a kernel: checked, and typed for the arguments of a call."""

from __future__ import annotations

import inspect
import re
import warnings
from dis import get_instructions
from typing import TYPE_CHECKING, Any, final

from xdev import _config
from xdev.compile import cpu as compiler
from xdev.compile.grid import Grid
from xdev.errors import users_level
from xdev.ufunc import literals, sources
from xdev.ufunc.assignments import refuse_lost
from xdev.ufunc.kernels import bounds, ranges, writes
from xdev.ufunc.parameters import refuse_arrays, refuse_deferred, refuse_raising
from xdev.ufunc.rules import Rules
from xdev.ufunc.scalar import ScalarFunction, is_plain

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np

    from xdev.compile.grid import Argument

# How a call says for how many points it runs, by the number of indices.
EXTENTS = {1: "n", 2: "h, w", 3: "d, h, w"}
FAST = re.compile(r"(LOAD|STORE)_FAST")


@final
class KernelFunction:
    """A Python function of indices and arguments.

    Parameters
    ----------
    function : callable
        Plain Python: what ``@kernel`` decorates.
    fastmath : bool
        Whether floating point arithmetic may be reordered and contracted.

    Raises
    ------
    TypeError
        It is no plain function, raises, or reads an array from outside.
    """

    def __init__(self, function: Callable[..., Any], *, fastmath: bool) -> None:
        self.names = check_plain(function, "kernel", "def f(i, x, out)")
        self.function, self.fastmath = function, fastmath
        self.name: str = function.__name__
        self._writes: dict[Any, writes.Writes] = {}

    def writes(self, arrays: dict[str, int]) -> writes.Writes:
        """Return which of its arrays it writes, of the number of axes of each."""
        key = tuple(arrays.items())
        found = self._writes.get(key)
        if found is None:
            found = self._writes[key] = writes.find(self.function, arrays)
        return found

    def split(self, indices: int, given: int) -> tuple[str, ...]:
        """Return the names of the arguments beside so many indices.

        Raises
        ------
        TypeError
            There are more or fewer arguments.
        """
        names = self.names[indices:]
        if given != len(names) or len(self.names) <= indices:
            index = "index" if indices == 1 else "indices"
            taken = "argument" if len(names) == 1 else "arguments"
            message = (
                f"{self.name}({', '.join(self.names)}) of {indices} {index} takes "
                f"{len(names)} {taken} ({', '.join(names)}), not {given}: "
            )
            if missing := names[given:]:
                verb = "is" if len(missing) == 1 else "are"
                message += f"{', '.join(missing)} {verb} missing; "
            message += (
                "each extent in the brackets gives an index, by which its parameters "
                "begin"
            )
            extents = EXTENTS.get(len(self.names) - given)
            if extents:
                message += (
                    f", so for {given} give it the extents {self.name}[{extents}]"
                )
            raise TypeError(message)
        return names

    def typed(
        self,
        indices: int,
        arguments: tuple[Argument, ...],
        working: np.dtype[Any],
        *,
        checked: bool = False,
    ) -> Grid:
        """Return what compilers take.

        Parameters
        ----------
        indices : int
            How many of the parameters are indices.
        arguments : tuple of Argument
            The types of the others.
        working : numpy.dtype
            What floats in the function are.
        checked : bool
            Whether bounds are checked, which they are under ``XDEV_DEBUG=1``.

        Raises
        ------
        TypeError
            It reads an array from outside, or adds to a number that nothing reads.
        """
        check_outside(self.function)
        kinds = dict(zip(self.names[indices:], arguments, strict=True))
        refuse_lost(self.function, (k for k, v in kinds.items() if v.ndim is None))
        replace = Replacement((self.function,), working)
        check = None
        if checked or _config.debug():
            arrays = {
                name: k
                for k, (name, kind) in enumerate(kinds.items())
                if kind.ndim is not None
            }
            check = bounds.Checks(arrays, sources.outside(self.function))
        also = check or ranges.Ranges(self.function)
        function = literals.typed(
            self.function, working, "inexact", replace, also
        ).function
        done = check is not None and check.done
        if check is not None and not done:
            message = f"{self.name}: no source, so that no bounds are checked"
            warnings.warn(message, RuntimeWarning, stacklevel=users_level())
        return Grid(function, indices, arguments, self.fastmath, done)


@final
class Replacement:
    """What compiled code uses for the values of outside names.

    Parameters
    ----------
    calling : tuple of callable
        The functions on the way here, to see one that calls itself.
    working : numpy.dtype
        What floats are.
    """

    def __init__(
        self, calling: tuple[Callable[..., Any], ...], working: np.dtype[Any]
    ) -> None:
        self._calling, self._working = calling, working

    def __call__(self, value: object) -> object:
        """Return a ufunc's function, or a plain one, so that it can be called."""
        scalar = getattr(value, "scalar", None)
        if isinstance(scalar, ScalarFunction):
            return scalar.device_function(Rules((), working=self._working), "inexact")
        typed = getattr(value, "_typed", None)
        plain = typed.function if isinstance(typed, KernelFunction) else value
        if not is_plain(plain):
            return value
        if plain in self._calling:
            name = plain.__name__
            message = f"{name} calls itself: write the recursion as a loop"
            raise TypeError(message)
        if plain is not value:
            message = (
                f"{self._calling[0].__name__} calls the kernel {plain.__name__}, which "
                "runs over points of its own: call one after the other, or make what "
                "both need a plain function"
            )
            raise TypeError(message)
        check_outside(plain)
        inner = Replacement((*self._calling, plain), self._working)
        typed = literals.typed(plain, self._working, "inexact", inner)
        return compiler.device_function(typed.function)


def check_outside(function: Callable[..., Any]) -> None:
    """Refuse a function that reads an array from outside.

    Raises
    ------
    TypeError
        It does; compilers would take the array for a constant.
    """
    refuse_arrays(function, sources.outside(function), way="")


def check_plain(
    function: Callable[..., Any], decorator: str, form: str
) -> tuple[str, ...]:
    """Return the names of a function's parameters.

    Parameters
    ----------
    function : callable
        What is decorated.
    decorator, form : str
        The decorator's name, and an example of what it takes, for errors.

    Raises
    ------
    TypeError
        It is no Python function of two or more plain parameters, it is async or a
        generator, or it raises.
    """
    python = inspect.isfunction(function)
    parameters = inspect.signature(function).parameters.values() if python else ()
    plain = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    if len(parameters) < 2 or any(  # noqa: PLR2004 - what is read, what is written
        p.kind not in plain or p.default is not inspect.Parameter.empty
        for p in parameters
    ):
        name = getattr(function, "__name__", repr(function))
        message = (
            f"{decorator} needs a Python function, {form}, without defaults, *args or "
            f"**kwargs, not {name}"
        )
        raise TypeError(message)
    refuse_deferred(function)
    refuse_raising(
        function,
        "compiled code cannot: write a mark into an array, and look at it after the "
        "call",
    )
    for lost in _bound_anew(function):
        message = (
            f"{function.__name__}: {lost} = … binds the name anew, which writes "
            f"nothing: write {lost}[…] = …"
        )
        raise TypeError(message)
    return tuple(p.name for p in parameters)


def _bound_anew(function: Callable[..., Any]) -> list[str]:
    """Return the parameters that are assigned to and never read, if nothing is written.

    Another one's elements may be what is written; then a name is but a name.
    """
    if any(i.opname.startswith("STORE_S") for i in get_instructions(function)):
        return []
    uses: dict[str, set[str]] = {"LOAD": set(), "STORE": set()}
    for each in get_instructions(function):
        kinds = FAST.findall(each.opname)  # two, where Python does two in one
        names = each.argval if isinstance(each.argval, tuple) else (each.argval,)
        for kind, name in zip(kinds, names, strict=False):
            uses[kind].add(name)
    lost = uses["STORE"] - uses["LOAD"]
    return [name for name in inspect.signature(function).parameters if name in lost]
