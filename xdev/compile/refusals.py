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
_CALL = r"No implementation of function .* for signature: *>>> *"
_ITEM = r"(?:static_)?[gs]etitem\("
_NUMBER = r"(bool|(?:u?int|float|complex)\d+)"
_GLOBAL = r"Untyped global name '(\w+)':.* <class "
_NONE = ": use operators, math and NumPy's functions of numbers"
_READ = "; from outside, compiled code reads numbers, tuples and compiled functions"
# What Numba says of the usual causes, and what that is in plain words: the first holds.
PLAIN = {
    rf"{_CALL}({_ITEM}(?:readonly )?array\(\w+, (\d)d.*)": (
        r"an array of \2 dimension(s) has \2 index(es), and one number is read or "
        r"written there: not \1"
    ),
    rf"{_CALL}({_ITEM}{_NUMBER}, .*)": (
        r"one number is there, a \2, which has no index: not \1"
    ),
    rf"{_CALL}(.*)": rf"compiled code has no \1{_NONE}",
    r"Unknown attribute '(\w+)' of type Module\(<module '(.+?)'.*": (
        rf"compiled code has no \2.\1{_NONE}"
    ),
    rf"Unknown attribute '(\w+)' of type {_NUMBER}": (
        r"one number is there, a \2, which has no '\1' (\g<0>)"
    ),
    rf"Invalid use of getiter with parameters \({_NUMBER}\)": (
        r"one number is there, a \1, which has no items (\g<0>)"
    ),
    rf"{_GLOBAL}'function'>": (
        r"'\1' is a plain function: compile it too, by @xdev.vectorize or @numba.njit "
        r"(\g<0>)"
    ),
    rf"{_GLOBAL}'(?:__main__\.)?(.+)'>": rf"'\1' is of class \2{_READ} (\g<0>)",
    r"The use of a (?:reflected )?(\w+)\(.*? variable '(\w+)' in globals.*": (
        rf"'\2' is of class \1{_READ} (\g<0>)"
    ),
    # So says numba-cuda, which does not know the name any more.
    r"<.+\.OverloadSelector object at \w+>, \((.+?),?\)": rf"there is a \1{_READ}",
    r"Can't unify return type from the following types: (.+?), (\S+) Return of: .*": (
        r"a value is of one type, and there it is \1 on one path, \2 on another"
    ),
    r"Cannot unify (.+) and (.+) for '.+', defined at .*": (
        r"a value is of one type, and there it is \1 on one path, \2 on another (\g<0>)"
    ),
}


def compiler_errors() -> tuple[type[Exception], ...]:
    """Return what Numba raises for a function that it cannot compile.

    Not all is its own: it asks SciPy for linear algebra, and modules for what is in
    them; and it fails its own assertions.
    """
    errors = _optional.numba().core.errors
    own = errors.NumbaError, errors.UnsupportedBytecodeError
    return *own, NotImplementedError, AttributeError, ImportError, AssertionError


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
    found = plain(" ".join(kept))
    return f"{found}\n  {code.co_filename}:{number}: {source}"


def plain(text: str) -> str:
    """Return what a compiler's words mean, in plain ones where they are known.

    Examples
    --------
    >>> plain("Unknown attribute 'shape' of type float64")
    "one number is there, a float64, which has no 'shape' (Unknown attribute 'shape' of
    type float64)"
    """
    for words, meaning in PLAIN.items():
        if match := re.fullmatch(words, text):
            return match.expand(meaning)
    return text


def _line(error: Exception, filename: str) -> int | None:
    """Return the line of a file that a compiler's message is about, the innermost."""
    places = PLACE.findall(str(error))
    if (loc := getattr(error, "loc", None)) is not None:
        places.append((loc.filename, loc.line))
    own = Path(filename).name
    return next((int(line) for path, line in places if Path(path).name == own), None)
