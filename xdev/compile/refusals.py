"""What a user reads where a function cannot be compiled: why, and which line of it."""

from __future__ import annotations

import linecache
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xdev import _optional

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

# Lines from which on Numba's text tells of its own search, or repeats itself.
REST = re.compile(r"File |There are|During|Overload|This error may")
NOISE = re.compile(r"Failed in|\s*$")
PLACE = re.compile(r'File "([^"]+)", line (\d+)')
TERMINAL = re.compile(r"\x1b\[[0-9;]*m")
# What is not there: a function for some types, something of a module.
UNKNOWN = re.compile(r"^No implementation of function .* for signature: *>>> *")
MEMBER = re.compile(r"^Unknown attribute '(\w+)' of type Module\(<module '(.+?)'.*")

ITEM = re.compile(r"^(?:static_)?[gs]etitem\((?:readonly )?array\(\w+, (\d)d")


def compiler_errors() -> tuple[type[Exception], ...]:
    """Return what Numba raises for a function that it cannot compile.

    Not all is its own: it asks SciPy for linear algebra, and modules for what is in
    them.
    """
    errors = _optional.numba().core.errors
    own = errors.NumbaError, errors.UnsupportedBytecodeError
    return *own, NotImplementedError, AttributeError, ImportError


def refusal(
    function: Callable[..., Any],
    inputs: Sequence[object],
    error: Exception,
    place: str = "",
) -> TypeError:
    """Return the error for a function that cannot be compiled.

    Parameters
    ----------
    function : callable
        The Python function.
    inputs : sequence
        The types that it was tried with; their ``str`` is shown.
    error : Exception
        The compiler's own.
    place : str
        For what it was compiled, as in ``" for CUDA"``.

    Examples
    --------
    >>> def half(x):
    ...     return x / 2
    >>> str(refusal(half, ("str",), ValueError("no such operation"))).splitlines()[0]
    'cannot compile half(str): no such operation'
    """
    call = f"{function.__name__}({', '.join(map(str, inputs))})"
    return TypeError(f"cannot compile {call}{place}: {reason(error, function)}")


def reason(error: Exception, function: Callable[..., Any]) -> str:
    """Return the core of a compiler's message and the source line it is about."""
    kept: list[str] = []
    for line in TERMINAL.sub("", str(error)).splitlines():
        if kept and REST.match(line):
            break
        if not NOISE.match(line):
            kept.append(line.strip())
    code = function.__code__
    number = _line(error, code.co_filename) or code.co_firstlineno
    source = linecache.getline(code.co_filename, number).strip()
    found = MEMBER.sub(r"\2.\1", UNKNOWN.sub("", " ".join(kept)))
    item = ITEM.match(found)
    if item:
        found = (
            f"an array of {item[1]} dimension(s) has {item[1]} index(es), and one "
            f"number is read or written there: not {found}"
        )
    elif found != " ".join(kept):
        found = (
            f"compiled code has no {found}: use operators, math and NumPy's functions "
            "of numbers"
        )
    return f"{found}\n  {code.co_filename}:{number}: {source}"


def _line(error: Exception, filename: str) -> int | None:
    """Return the line of a file that a compiler's message is about, the innermost."""
    places = PLACE.findall(str(error))
    if (loc := getattr(error, "loc", None)) is not None:
        places.append((loc.filename, loc.line))
    own = Path(filename).name
    return next((int(line) for path, line in places if Path(path).name == own), None)
