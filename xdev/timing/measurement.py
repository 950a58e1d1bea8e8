"""``timeit``: one function or statement, timed to the end of its work."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any

from xdev.timing.counts import checked_counts
from xdev.timing.sampling import RUN_SECONDS, begin, begin_code

if TYPE_CHECKING:
    from collections.abc import Callable

    from xdev.device import Device
    from xdev.timing.result import Timing


def timeit(
    f: Callable[..., object] | str,
    *args: object,
    setup: str | Callable[[], object] = "pass",
    globals: dict[str, Any] | None = None,
    number: int | None = None,
    repeat: int = 7,
    device: Device | str | None = None,
    timer: Callable[[], float] | None = None,
    cold: bool = False,
) -> Timing:
    """Time ``f(*args)`` or a statement as IPython's ``%timeit`` does, to its end.

    The first call, which compiles and fills pools, is timed apart. Each run starts
    and ends with the device idle and has the garbage collector off. Give it random
    data: processors draw less power, and so run faster, on zeros.

    Parameters
    ----------
    f : callable or str
        What is timed; a statement as :func:`timeit.timeit` takes it.
    *args : object
        The function's arguments; after a statement at most one, its ``setup``.
    setup : str or callable
        Of a statement: what runs before each run, untimed. They share variables.
    globals : dict, optional
        The statement's global variables; left out, it has none but the builtins.
    number : int, optional
        Calls in one run; left out, the smallest power of ten that takes 0.2 s.
    repeat : int
        Runs.
    device : Device or str, optional
        Whose work is waited for; left out, the device that holds an argument, the
        result, or a variable that the statement names, else the default device.
    timer : callable, optional
        Returns the host's time [s]; left out, :func:`time.perf_counter`.
    cold : bool
        Whether each call finds the device's last cache overwritten; if not, it finds
        there what the call before left.

    Returns
    -------
    Timing
        Its text and attributes are those of IPython's ``TimeitResult`` and hold wall
        time [s]; ``launch`` and ``device`` hold the other two clocks' times, and
        ``notes`` says in sentences what a reader must know.

    Raises
    ------
    ValueError
        ``number`` or ``repeat`` is no positive whole number.
    TypeError
        ``f`` cannot be called, or has a setup or globals and is no statement.
    SyntaxError
        The statement or its setup is none.

    Examples
    --------
    >>> timeit(sum, [1, 2, 3], number=10, repeat=2).repeat
    2
    >>> timeit("x.sort()", "x = [3, 1, 2]", number=10).loops
    10
    """
    number, repeat = checked_counts(number, repeat)
    how: dict[str, Any] = {"cold": cold, "clock": timer or time.perf_counter}
    if isinstance(f, str):
        before = _setup_of(setup, args)
        names = {"__name__": "__main__"} if globals is None else globals
        try:
            candidate = begin_code(f, before, names, device, **how)
        except NameError as error:
            if globals is None:
                error.add_note("a statement sees your variables with globals=globals()")
            raise
    else:
        _check_function(f, setup, globals)
        call = partial(f, *args) if args else f
        candidate = begin(call, device, args, **how)[0]
    candidate.settle(number, RUN_SECONDS, steps=(1,))
    for _ in range(repeat):
        candidate.sample()
    return candidate.timing()


def _setup_of(setup: str | Callable[[], object], args: tuple[object, ...]) -> Any:
    if not args:
        return setup
    if len(args) > 1 or setup != "pass":
        raise TypeError(
            "a statement takes no arguments but its setup, once: use "
            'timeit("f(x)", globals={"f": f, "x": x})'
        )
    return args[0]


def _check_function(f: object, setup: object, globals: object) -> None:
    if not callable(f):
        kind = type(f).__name__
        raise TypeError(f"timeit takes a function and its arguments, not a {kind}")
    if setup != "pass" or globals is not None:
        raise TypeError(
            "setup and globals are for statements: give a function its arguments, "
            "timeit(f, x, y)"
        )
