"""What a user reads where a function cannot be compiled: why, and which line of it."""

from __future__ import annotations

import linecache
import pickle
import re
from contextlib import contextmanager, suppress
from functools import reduce
from pathlib import Path
from types import CellType
from typing import TYPE_CHECKING, Any

from xdev import _config, _optional
from xdev.compile.digests import reads
from xdev.errors import XdevError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

# What compilers say of the usual causes, and what that is in plain words.

_CALL = r"No implementation of function .* for signature: *>>> *"
_NEW = r"(?:typeddict_empty|_ol_array_allocate|(?:zeros|ones|empty|full)(?:_like)?)"
_NUMBER = r"(?P<number>bool|(?:u?int|float|complex)\d+)"
_NONE = ": use operators, math and NumPy's functions of numbers"
_LOOP = (
    ": write a loop over the elements, as m = max(m, x[i]) or s += x[i] * y[i], or "
    "compute it outside"
)
_READ = "; from outside, compiled code reads numbers, tuples and functions"
_GLOBAL = r"Untyped global name '(\w+)':.* <class "
# Elements of arrays: how Numba shows x[i] and x[i] = y.
_ITEM = r"(?:static_)?[gs]etitem\("
_ARRAY = r"(?:readonly )?array\((?P<dtype>\w+), (?P<axes>\d)d, \w+\)"
_PLACE = r"(?:u?int\d+|Literal\[int\]\(-?\d+\)|slice<[^>]*>)"
_ODD = r"(?P<odd>(?:float|complex)\d+|bool|none|unicode_type|Literal\[str\]\(.*?\))"
_BEFORE = rf"(?:Tuple\((?:{_PLACE}, )*|UniTuple\()?"  # what stands before an odd index
# Atomics: how Numba shows that one of another number of arguments is not known.
_ATOMIC = (
    r"<function \w+ at \w+>\)[^>]*>>> ((?:add|max|min|cas)\(.*\))\n(?s:.*)grid\.py"
)
# What stands anywhere in a compiler's text: the first holds, before all of PLAIN.
WITHIN = {
    r"TypingError: (xdev\.atomic\..+)": r"\1",
    _ATOMIC: (
        "each of xdev.atomic.add, max and min has three arguments, (array, index, "
        r"value), and cas four, (array, index, expected, value): not \1"
    ),
}
# What its first words are: the first holds.
PLAIN = {
    rf"{_CALL}(?:static_)?setitem\(readonly array.*": (
        "an array that may only be read is written there"
    ),
    rf"{_CALL}{_ITEM}{_ARRAY}, {_BEFORE}{_ODD}.*": (
        r"an index is an integer, and one there is of type \g<odd>"
    ),
    rf"{_CALL}(?P<all>{_ITEM}{_ARRAY}.*)": (
        r"an array of \g<axes> dimension(s) has \g<axes> index(es), and one number is "
        r"read or written there, of its type \g<dtype>: not \g<all>"
    ),
    rf"(?:{_CALL}{_ITEM}|Invalid use of getiter with parameters \(|failed to unpack )"
    rf"{_NUMBER}(?:, .*|\))?": r"one number is there, a \g<number>, which has no items",
    rf"NRT required but not enabled|{_CALL}{_NEW}\(.*": (
        "new memory is asked for, as lists, dicts, strings, new arrays, x * 2 of an "
        "array and x[:] = y[:] take, which @kernel and @guvectorize do not have: pass "
        "an array, or use a tuple; elements are assigned in a loop"
    ),
    rf"{_CALL}((sqrt|exp|log|log10|sin|cos|tan|sinh|cosh|tanh)\(complex\d+\))": (
        r"math's functions are of real numbers, and there is \1: use np.\2"
    ),
    rf"{_CALL}(?:npy_|array_|arr_)?(?P<name>\w+)\((?P<all>.*\barray\(.*)\)": (
        rf"compiled code has no \g<name> of an array{_LOOP}: not \g<name>(\g<all>)"
    ),
    rf"{_CALL}(?:exception_match|mark_try_block)\(.*|'\w+' object has no attribute "
    r"'(?:set_try_status|exc_class)'|Illegal IR, del .*|The use of yield in a .*"
    r"|The 'with\b.*|Unsupported context .*|Use of unsupported opcode .*": (
        "Python alone has what is there, as with, del, import, global, generators, and "
        "errors that are told apart: test the values first, write a loop, import at "
        "the top of the module, return what is computed"
    ),
    rf"{_CALL}(.*)|{_GLOBAL}'(?:builtin_function_or_method|function)'>|"
    r"Use of unsupported NumPy function '(numpy\.\w+)'.*": (
        rf"compiled code has no \1\2\3{_NONE}"
    ),
    # So it says where a function is known, but not for these types, or a type is not.
    r"Implementation function returned by `@overload` .*|(float128|complex256)"
    r"|<class '[\w.]+\.\w+'>|scipy .* is required for linear algebra.*": (
        "compiled code has no such function or type, as sorted, linalg and float128"
        f"{_NONE}"
    ),
    r"Unknown attribute '(\w+)' of type Module\(<module '(.+?)'.*": (
        rf"compiled code has no \2.\1{_NONE}"
    ),
    rf"Unknown attribute '(\w+)' of type {_NUMBER}": (
        r"one number is there, a \g<number>, which has no '\1'"
    ),
    rf"{_GLOBAL}'(?:__main__\.)?(.+)'>": rf"'\1' is of class \2{_READ}",
    r"(?:Can't unify return type from the following types:|Cannot unify) "
    r"(.+?)(?:,| and) (\S+) .*": (
        r"a value is of one type, and there it is \1 on one path, \2 on another"
    ),
    r"Cannot infer the type of variable .*, have imprecise type: "
    r"(?:reflected )?(?:DictType|list|set)\b.*": (
        "an empty list, set or dict is there, and nothing tells the type of its items"
    ),
    r"No conversion from none to \w+ for '.*return_value.*|"
    r".*: Cannot convert NoneType to .*": "returns nothing: return the result",
    r"Cannot cast (complex\d+) to (\w+): .*": (
        r"\1 is cast to \2 there: take x.real, x.imag or abs(x)"
    ),
    r"Invalid use of getiter with parameters \((Tuple\(.*\))\)": (
        r"a loop goes over values of several types, \1: give all of them one type"
    ),
    r"No conversion from (.+) to (\w+) for '.*return_value.*": (
        r"returns \1, which is not made a \2"
    ),
    r"The compiler failed to analyze the bytecode.* '(\w+)' is not defined\.": (
        r"'\1' is first assigned below this line, and read in a later round of a loop: "
        "assign it before the loop, too"
    ),
    r"Type of variable '.+' cannot be determined.*": (
        "the type of a value there cannot be told: where an assignment stands inside "
        "an expression (y := …), write it before, on a line of its own"
    ),
}


TEXTS = re.compile(r"Literal\[str\]\((.*?)\)")  # as Numba shows them


def plain(text: str, whole: str = "") -> str:
    """Return what a compiler's first words, in one line, mean; ``whole`` are all.

    Examples
    --------
    >>> plain("Unknown attribute 'shape' of type float64")
    "one number is there, a float64, which has no 'shape'"
    """
    for words, meaning in WITHIN.items():
        if match := re.search(words, whole):
            return match.expand(meaning)
    for words, meaning in PLAIN.items():
        if match := re.fullmatch(words, text):
            text = match.expand(meaning)
            break
    return TEXTS.sub(r"'\1'", text).replace("unicode_type", "str")


# Lines from which on Numba's text tells of its own search, or repeats itself.
REST = re.compile(r"File |There are|During|Overload|This error may")
NOISE = re.compile(r"Failed in|- Resolution failure|\s*$")
PLACE = re.compile(r'File "([^"]+)", line (\d+)|(?:at|from) (\S.*?) \((\d+)\)')
TERMINAL = re.compile(r"\x1b\[[0-9;]*m")
# numba-cuda-mlir says so instead of what it lacks, and where to report it.
HIDING = "UserFacingInternalCompilerError"
ASKING = re.compile(r"\.? (?:This is always a bug|Should this be|Please file).*")


@contextmanager
def explained(
    function: Callable[..., Any], inputs: Sequence[object], place: str = ""
) -> Iterator[None]:
    """Turn what a compiler raises for a function into :func:`compile_error`.

    Compilers' own errors have no common base, and they fail otherwise besides: they ask
    SciPy for linear algebra, and modules for what is in them; they compute with
    literals; and they fail their own assertions.
    """
    try:
        yield
    except (TypeError, MemoryError, OSError, XdevError):
        raise
    except Exception as error:  # noqa: BLE001 - as it says above
        own = error if _config.debug() else None  # fifty lines of the compiler's own
        raise compile_error(function, inputs, error, place) from own


def compile_error(
    function: Callable[..., Any],
    inputs: Sequence[object],
    error: Exception,
    place: str = "",
) -> TypeError:
    """Return the error for a function that cannot be compiled for some inputs.

    ``error`` is the compiler's own; ``place`` says what for, as in ``" for CUDA"``.

    Examples
    --------
    >>> def half(x):
    ...     return x / 2
    >>> error = compile_error(half, ("str",), ValueError("no such operation"))
    >>> str(error).splitlines()[0]
    'cannot compile half(str): no such operation'
    """
    _drop_frames(function)
    call = f"{function.__name__}({', '.join(map(str, inputs))})"
    return TypeError(f"cannot compile {call}{place}: {reason(error, function)}")


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
    namespace = function.__globals__ | {
        name: cell.cell_contents for name, cell in cells if cell != CellType()
    }
    for name, _, attributes, _ in reads(code):
        with suppress(KeyError, AttributeError):
            value = reduce(getattr, attributes, namespace[name])
            if hasattr(value, "_compiler") and hasattr(value, "py_func"):
                yield value


KEEPERS = (  # of a function's source, which xdev reads
    "Put the function into a file, use IPython or the shell of Python 3.13 or later, "
    "which keep sources"
)


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
    line = linecache.getline(code.co_filename, number).strip()
    source = line or f"no source was found, and fewer functions compile so. {KEEPERS}"
    meaning = plain(" ".join(kept), said)
    return f"{meaning}\n  {code.co_filename}:{number}: {source}"


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


# What compiled CPU code could only report to Python: found after optimisation.
#
# A loop runs without the interpreter, often in threads: it can neither print nor
# raise. What a function still has of that after LLVM has removed what never happens
# is refused.

INTERPRETER = "@numba_gil_ensure("  # the lock that print and objmode take
# What was linked from two libraries under one name has a number in one of them.
PICKLED = re.compile(r'@\.const\.pickledata\.\w+(?:\.\d+)? = .*? c"(.*)"', re.MULTILINE)
# Python's own: no memory is left; powers of complex zeros, which are NaN in loops. And
# Numba's own: its dicts were damaged, or found no memory, or compared keys by an
# ``__eq__`` that failed, as none of numbers does; an array is beyond all memory.
# A range with a step of 0 ends its point: a ufunc's result there is NaN, or 0; others
# write nothing more there. Sieves and strided loops need no test of each step for that.
BORNE = (MemoryError, ZeroDivisionError, RuntimeError, AssertionError)
NO_STEP = "range() arg 3 must not be zero"
UNHEARD = ("key comparison failed", "array is too big", NO_STEP)
TEST_FIRST = (
    "test the values first, and give a mark such as NaN instead: keys by conditions, "
    "or a search of a tuple in a loop; of sets, use discard"
)


def refuse_faults(
    function: Callable[..., Any], shown: Sequence[object], compiled: Any
) -> None:
    """Refuse a function that needs the interpreter, or that may raise.

    ``shown`` are the types that errors show, ``compiled`` is Numba's result.
    """
    text = str(compiled.library._final_module)  # noqa: SLF001
    if INTERPRETER in text:
        message = (
            "it needs the Python interpreter, as print and objmode do, which compiled "
            "loops run without: to see values, write them into an array"
        )
        raise compile_error(function, shown, RuntimeError(message))
    libraries = Path(_optional.numba().__file__).parent, Path(__file__).parent
    for kind, args, place in _raised(text):
        own = place and not any(map(Path(place[1]).is_relative_to, libraries))
        borne = issubclass(kind, BORNE) or (args and str(args[0]).startswith(UNHEARD))
        # Without words it is the end of a point whose bounds were checked: reported.
        if not own and (borne or (issubclass(kind, IndexError) and not args)):
            continue
        words = (arg for arg in args or () if isinstance(arg, str | int | float))
        what = ": ".join((kind.__name__, *map(str, words)))
        message = f"it may raise {what}, which compiled loops cannot: {TEST_FIRST}"
        if kind is StopIteration:  # of what is empty
            message = f"it has no max or min of an array{_LOOP}; of numbers, max(a, b)"
        if own:
            message += f'\nFile "{place[1]}", line {place[2]}'
        raise compile_error(function, shown, RuntimeError(message))


def _raised(text: str) -> Iterator[tuple[Any, Any, Any]]:
    """Yield the errors in a module: class, arguments, place where it is written out."""
    for literal in PICKLED.findall(text):
        text = literal.replace("\\\\", "\\5C").replace("\\", "\\x")
        data = text.encode().decode("unicode_escape").encode("latin-1")
        error = pickle.loads(data)  # noqa: S301 - Numba has just written it
        yield error if len(error) == 3 else (*error, None)  # noqa: PLR2004
