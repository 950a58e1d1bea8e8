"""What a user reads where a function cannot be compiled: why, and which line of it."""

from __future__ import annotations

import linecache
import re
import sys
from contextlib import suppress
from functools import reduce
from pathlib import Path
from types import CellType
from typing import TYPE_CHECKING, Any

from xdev import _config
from xdev.compile.outside import reads
from xdev.compile.plain_words import plain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

# Lines from which on Numba's text tells of its own search, or repeats itself.
REST = re.compile(r"File |There are|During|Overload|This error may")
NOISE = re.compile(r"Failed in|- Resolution failure|\s*$")
PLACE = re.compile(r'File "([^"]+)", line (\d+)|(?:at|from) (\S.*?) \((\d+)\)')
TERMINAL = re.compile(r"\x1b\[[0-9;]*m")
# Each compiler's own errors, which have no common base; a module need not be loaded.
OWN = {
    "numba.core.errors": ("NumbaError", "UnsupportedBytecodeError"),
    "numba.cuda.errors": ("UnsupportedBytecodeError",),
    "numba_cuda_mlir.errors": ("UserFacingInternalCompilerError",),
    "numba_cuda_mlir.numba_cuda.core.errors": ("NumbaError",),
    "numba_cuda_mlir.numba_cuda.errors": ("UnsupportedBytecodeError",),
}
# What they raise besides: they ask SciPy for linear algebra, and modules for what is in
# them; they compute with literals; and they fail their own assertions.
OTHERS = (
    NotImplementedError,
    AttributeError,
    ImportError,
    AssertionError,
    LookupError,
    ValueError,
)
# numba-cuda-mlir says so instead of what it lacks, and where to report it.
HIDING = "UserFacingInternalCompilerError"
ASKING = re.compile(r"\.? (?:This is always a bug|Should this be|Please file).*")


def compiler_errors() -> tuple[type[Exception], ...]:
    """Return what compilers raise for a function that they cannot compile."""
    loaded = ((sys.modules.get(module), names) for module, names in OWN.items())
    own = (getattr(module, name, None) for module, names in loaded for name in names)
    return *filter(None, own), *OTHERS


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
    _drop_frames(function)
    call = f"{function.__name__}({', '.join(map(str, inputs))})"
    return TypeError(f"cannot compile {call}{place}: {reason(error, function)}")


def cause(error: Exception) -> Exception | None:
    """Return what a traceback shows of a compiler: its own fifty lines for debugging.

    A :func:`refusal` has all of them that is about the function.
    """
    return error if _config.debug() else None


def _drop_frames(function: Callable[..., Any], *above: Any) -> None:
    """Drop the frames of the failures that Numba keeps with the functions called.

    They lead to the frames of all callers, whose arrays would never be given back.
    """
    for called in _dispatchers(function):
        for failure in getattr(called._compiler, "_failed_cache", {}).values():  # noqa: SLF001
            failure.__traceback__ = None
        if called not in above:
            _drop_frames(called.py_func, called, *above)


def _dispatchers(function: Callable[..., Any]) -> Iterator[Any]:
    """Return the functions compiled by Numba that a function reads from outside."""
    code = function.__code__
    cells = zip(code.co_freevars, function.__closure__ or (), strict=True)
    outside = function.__globals__ | {
        name: cell.cell_contents for name, cell in cells if cell != CellType()
    }
    for name, _, attributes in reads(code):
        with suppress(KeyError, AttributeError):
            value = reduce(getattr, attributes, outside[name])
            if hasattr(value, "_compiler") and hasattr(value, "py_func"):
                yield value


def reason(error: Exception, function: Callable[..., Any]) -> str:
    """Return the core of a compiler's message and the source line it is about."""
    said, kept = _said(error), list[str]()
    for line in said.splitlines():
        if kept and REST.match(line):
            break
        if not NOISE.match(line):
            kept.append(line.strip())
    code = function.__code__
    number = _line(error, code.co_filename) or code.co_firstlineno
    source = linecache.getline(code.co_filename, number).strip()
    found = plain(" ".join(kept), said)
    return f"{found}\n  {code.co_filename}:{number}: {source}"


def _said(error: Exception) -> str:
    """Return a compiler's words."""
    hidden = error.__context__ if type(error).__name__ == HIDING else None
    if hidden is not None:
        first = ASKING.sub("", str(hidden).partition("\n")[0])
        return f"numba-cuda-mlir has no code for it: {first}"
    return TERMINAL.sub("", str(error))


def _line(error: Exception, filename: str) -> int | None:
    """Return the line of a file that a compiler's message is about, the innermost."""
    places = [
        (file or other, line or number)
        for file, line, other, number in PLACE.findall(str(error))
    ]
    if (loc := getattr(error, "loc", None)) is not None:
        places.append((loc.filename, loc.line))
    own = Path(filename).name
    return next((int(line) for path, line in places if Path(path).name == own), None)
