"""What compiled CPU code could only report to Python: found after optimisation.

A loop runs without the interpreter, often in threads: it can neither print nor raise.
What a function still has of that after LLVM has removed what never happens is refused.
"""

from __future__ import annotations

import pickle
import re
from dis import get_instructions
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xdev import _optional
from xdev.compile.refusals import refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

INTERPRETER = "@numba_gil_ensure("  # the lock that print and objmode take
# What was linked from two libraries under one name has a number in one of them.
PICKLED = re.compile(r'@\.const\.pickledata\.\w+(?:\.\d+)? = .*? c"(.*)"', re.MULTILINE)
ESCAPE = re.compile(rb"\\(\\|[0-9A-Fa-f]{2})")
CALL = re.compile(r"\b(?:call|invoke)\b[^@\n]*@(?!llvm\.)")
# Python's own: no memory is left; powers of complex zeros, which are NaN in loops.
BORNE = (MemoryError, ZeroDivisionError)
# Numba's own: its dicts were damaged, or found no memory, or compared keys by an
# ``__eq__`` that failed, as none of numbers does; an array is beyond all memory.
# A range with a step of 0 ends its point: a ufunc's result there is NaN, or 0; others
# write nothing more there. Sieves and strided loops need no test of each step for that.
DAMAGE = (RuntimeError, AssertionError)
NO_STEP = "range() arg 3 must not be zero"
UNHEARD = ("key comparison failed", "array is too big", NO_STEP)
WAYS = {
    KeyError: "write the keys as conditions, or search a tuple in a loop; of sets, use "
    "discard",
    StopIteration: "compare in a loop, or the items of a tuple: max((x, y))",
}
TESTED = "test the values first, and give a mark such as NaN instead"


def check(function: Callable[..., Any], shown: Sequence[object], compiled: Any) -> None:
    """Refuse a function that needs the interpreter, or that may raise.

    Parameters
    ----------
    function : callable
        The Python function.
    shown : sequence
        The types that errors show.
    compiled : Numba's CompileResult
        What became of it.

    Raises
    ------
    TypeError
        It does; the text has the reason and the source line.
    """
    text = str(compiled.library._final_module)  # noqa: SLF001
    if INTERPRETER in text:
        message = (
            "it needs the Python interpreter, as print and objmode do, which compiled "
            "loops run without: to see values, write them into an array"
        )
        message += _place(function, _printing(function))
        raise refusal(function, shown, RuntimeError(message))
    library = Path(_optional.numba().__file__).parent
    for kind, args, place in _raised(text):
        own = place is not None and not Path(place[1]).is_relative_to(library)
        if not own and _is_borne(kind, args):
            continue
        words = (arg for arg in args or () if isinstance(arg, str | int | float))
        what = ": ".join((kind.__name__, *map(str, words)))
        way = TESTED if own else WAYS.get(kind, TESTED)
        message = f"it may raise {what}, which compiled loops cannot: {way}"
        if own:
            message += f'\nFile "{place[1]}", line {place[2]}'
        raise refusal(function, shown, RuntimeError(message))


def is_straight(compiled: Any) -> bool:
    """Say whether compiled code has no branch and calls no function of another."""
    module = compiled.library._final_module  # noqa: SLF001
    made = module.get_function(compiled.fndesc.llvm_func_name)
    return len(list(made.blocks)) == 1 and not CALL.search(str(made))


def _is_borne(kind: type[BaseException], args: Any) -> bool:
    """Say whether an error of Numba's own never happens, or is told of otherwise."""
    if issubclass(kind, (*BORNE, *DAMAGE)):
        return True
    if args and str(args[0]).startswith(UNHEARD):
        return True
    # Without words it is the end of a point whose bounds were checked: reported.
    return issubclass(kind, IndexError) and not args


def _raised(text: str) -> Iterator[tuple[Any, Any, Any]]:
    """Yield the errors in a module: class, arguments, place where it is written out."""
    for literal in PICKLED.findall(text):
        data = ESCAPE.sub(_unescaped, literal.encode())
        found = pickle.loads(data)  # noqa: S301 - Numba has just written it
        yield found if len(found) == 3 else (*found, None)  # noqa: PLR2004


def _unescaped(escape: re.Match[bytes]) -> bytes:
    """Return the byte that an escape of LLVM's stands for."""
    return escape[1] if escape[1] == b"\\" else bytes([int(escape[1], 16)])


def _printing(function: Callable[..., Any]) -> int | None:
    """Return the line on which a function names ``print``."""
    return next(
        (
            i.positions.lineno
            for i in get_instructions(function)
            if i.argval == "print" and i.positions is not None
        ),
        None,
    )


def _place(function: Callable[..., Any], line: int | None) -> str:
    name = function.__code__.co_filename
    return "" if line is None else f'\nFile "{name}", line {line}'
