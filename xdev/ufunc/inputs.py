"""A ufunc's arguments, by NEP 50; its function's parameters, and what it may not be."""

from __future__ import annotations

import ast
import inspect
import linecache
import sys
from dis import get_instructions
from types import ModuleType
from typing import TYPE_CHECKING, Any, final

import numpy as np

from xdev._freed import is_freed, use_after_free
from xdev.compile.digests import reads
from xdev.compile.formulas import Dtypes, is_bfloat16
from xdev.errors import not_array, quoted, type_name
from xdev.ufunc import sources
from xdev.ufunc.sources import WEAK, FunctionScope, numpys

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import CodeType

Labels = tuple[str, ...]
SUPPORTED = frozenset("?bhilqBHILQefdFD")
DIGITS = 128  # the bits of an int that an error spells out


def refuse(name: str, labels: Labels, operands: Sequence[Any], nout: int = 1) -> None:
    """Refuse classes and freed arrays among inputs, ``nout`` outputs and ``where``."""
    for number, x in enumerate(operands):
        if isinstance(x, type) or is_freed(x):
            outs = ["out="] if nout == 1 else [f"out[{k}]" for k in range(nout)]
            what = f"{name}: {[*labels, *outs, 'where='][number]}"
            if is_freed(x):
                raise use_after_free(x, what)
            raise TypeError(f"{what} is {not_array(x, 'pass an array')}")


def check(dtype: np.dtype[Any], name: str) -> None:
    """Refuse a dtype that ufuncs do not have; ``name`` is the function's."""
    if dtype.char not in SUPPORTED and not is_bfloat16(dtype):
        raise TypeError(
            f"{name}: dtype {dtype} is not supported; use bool, integers, float16, "
            "bfloat16, float32, float64, complex64 or complex128"
        )


def resolve(args: Sequence[Any], name: str) -> Dtypes:
    """Return each argument's dtype; Python numbers are weak, as in NEP 50.

    Examples
    --------
    >>> resolve((np.zeros(3, "float32"), 2.0), "f")
    (dtype('float32'), dtype('float32'))
    """
    strong = [None if type(x) in WEAK else dtype_of(x) for x in args]
    dtypes = [d for d in strong if d is not None]
    for dtype in dtypes:
        check(dtype, name)
    return tuple(
        _weak(dtypes, x) if d is None else d for d, x in zip(strong, args, strict=True)
    )


def _weak(dtypes: Sequence[np.dtype[Any]], x: complex) -> np.dtype[Any]:
    """Return what a Python number is beside dtypes; bfloat16 takes it as float16 does.

    ml_dtypes makes float64 of bfloat16 and a float. An int is one, however large: NumPy
    would take one alone that int64 does not hold for uint64, or for an object.
    """
    if dtypes and type(x) is not complex:
        others = np.result_type(*dtypes)
        if is_bfloat16(others):
            return others
    return np.result_type(*dtypes, 0 if type(x) is int else x)


def fits(x: Any, dtype: np.dtype[Any]) -> bool:
    """Say whether a signature's dtype takes an argument; Python numbers by kind."""
    if type(x) not in WEAK:
        return np.can_cast(dtype_of(x), dtype)
    return dtype.kind in {int: "iufc", float: "fc", complex: "c"}[type(x)]


def strong(
    args: Sequence[Any], dtypes: Sequence[np.dtype[Any]], name: str, labels: Labels
) -> list[Any]:
    """Return the operands with Python numbers in dtypes, which must hold them."""
    try:
        return [
            dtype.type(x) if type(x) in WEAK else x
            for x, dtype in zip(args, dtypes, strict=True)
        ]
    except OverflowError as error:
        raise misfit(args, dtypes, name, labels) or error from None


def misfit(
    args: Sequence[Any], dtypes: Sequence[np.dtype[Any]], name: str, labels: Labels
) -> OverflowError | None:
    """Return the error for a Python int that its dtype does not hold, if there is one.

    Examples
    --------
    >>> misfit((300,), (np.dtype("uint8"),), "f", ("x",))
    OverflowError('f: x is 300, which uint8 does not hold: pass a number that fits, \
or use another dtype (astype, dtype=)')
    """
    for x, label, dtype in zip(args, labels, dtypes, strict=False):
        if type(x) is not int:
            continue
        try:
            dtype.type(x)
        except OverflowError:
            bits = x.bit_length()
            value = f"an int of {bits:,} bits" if bits > DIGITS else f"{x:,}"
            return OverflowError(
                f"{name}: {label} is {value}, which {dtype} does not hold: "
                "pass a number that fits, or use another dtype (astype, dtype=)"
            )
    return None


def dtype_of(x: Any) -> np.dtype[Any]:
    """Return the NumPy dtype of an array or a number."""
    dtype = getattr(x, "dtype", None)
    if dtype is None and isinstance(x, bool | int | float | complex):
        return np.result_type(x)
    if dtype is None and (interface := getattr(x, "__cuda_array_interface__", None)):
        dtype = interface["typestr"]
    listed = isinstance(x, list | tuple)
    try:
        result = np.dtype(dtype) if dtype is not None else np.asarray(x).dtype
    except (TypeError, ValueError):
        if dtype is None and listed:
            raise  # NumPy says what is wrong in it
        result = None
    if result is None or (dtype is None and result.hasobject and not listed):
        raise TypeError(
            f"{type(x).__name__} object has no dtype that NumPy knows: pass an array "
            "(xdev.asarray) or a number"
        )
    return result


def is_dask(x: Any) -> bool:
    """Say whether an object is a collection of Dask's, or one is in it.

    What may hold one (xarray, pint) has its protocol, and no graph where it does not.
    """
    graph = getattr(type(x), "__dask_graph__", None)
    return graph is not None and graph(x) is not None


def is_collection(x: Any) -> bool:
    """Say whether an object is a ``dask.array``: not what may hold one."""
    array = getattr(sys.modules.get("dask.array"), "Array", ())
    return isinstance(x, array)


# Parameters that count: ends of ``range``, and indices.
#
# Beside floats a Python integer given for one stays an integer. A parameter that does
# nothing else meets no value, so that it has no part in the results' dtype.

INT64 = np.dtype(np.int64)


@final
class CountingParameters:
    """The parameters of a function that count, found in its source, if it has one."""

    def __init__(self, function: Callable[..., Any]) -> None:
        code = function.__code__
        names = code.co_varnames[: code.co_argcount]
        source = sources.find(code)
        used, everywhere = list[str](), list[str]()
        if source is not None:
            everywhere += _names(source.node)
            scope = FunctionScope(source.node, sources.outside(function))
            for part in _counting(source.node, scope):
                used += _names(part)
        self._used = [name in used for name in names]
        self._alone = [0 < used.count(x) == everywhere.count(x) for x in names]

    def resolve(
        self, args: Sequence[Any], signatures: Sequence[Dtypes], name: str
    ) -> Dtypes:
        """Return each argument's dtype.

        A Python number takes what the first of the declared inputs that fits has there.
        """
        for taken in signatures:
            if len(args) == len(taken) and all(map(fits, args, taken)):
                pairs = zip(args, taken, strict=True)
                return tuple(d if type(x) in WEAK else dtype_of(x) for x, d in pairs)
        dtypes = resolve(args, name)
        if signatures or all(dtype.kind in "iub" for dtype in dtypes):
            return dtypes
        whole = [
            type(x) is int and used for x, used in zip(args, self._used, strict=False)
        ]
        if not any(whole):
            return dtypes
        others = [x for x, count in zip(args, whole, strict=True) if not count]
        rest = iter(resolve(others, name))
        return tuple(INT64 if count else next(rest) for count in whole)

    def working(self, inputs: Dtypes) -> np.dtype[Any]:
        """Return the result type of the inputs that do more than count.

        Without any it is bool, beside which Python numbers are int64 and float64.
        """
        pairs = zip(inputs, self._alone, strict=False)
        values = [dtype for dtype, alone in pairs if not (alone and dtype.kind in "iu")]
        return np.result_type(*(values or inputs or [np.dtype(np.bool_)]))


def _counting(tree: ast.AST, scope: FunctionScope) -> Iterator[ast.AST]:
    """Go through the outermost calls of ``range``, and indices."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Call) and scope.builtin(node.func) == "range":
            yield node
        elif isinstance(node, ast.Subscript):
            yield node.slice
            yield from _counting(node.value, scope)
        else:
            yield from _counting(node, scope)


def _names(tree: ast.AST) -> Iterator[str]:
    return (node.id for node in ast.walk(tree) if isinstance(node, ast.Name))


# The parameters of a scalar function, and what it may not be.

DEFERRED = inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR | inspect.CO_GENERATOR
NEIGHBOURS = np.nextafter, np.spacing
PROTOCOLS = ("__dlpack__", "__array_interface__", "__cuda_array_interface__")


def positional(
    function: Any, needed: str, way: str, *, least: int, defaults: bool = True
) -> Labels:
    """Return the names of a function's parameters; refuse what cannot be compiled.

    That is one with others than positional ones, with fewer than ``least``, or with
    ``defaults`` where it may have none, as ``needed`` says; one whose call computes
    nothing yet; and one that raises: ``way`` says who cannot, and what to do.
    """
    plain = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    python = inspect.isfunction(function)
    parameters = [*inspect.signature(function).parameters.values()] if python else []
    fit = all(
        p.kind in plain and (defaults or p.default is p.empty) for p in parameters
    )
    if not (python and fit and len(parameters) >= least):
        name = getattr(function, "__name__", quoted(function))
        raise TypeError(f"{needed}, not {name}")
    code = function.__code__
    if code.co_flags & DEFERRED:
        raise TypeError(
            f"{function.__name__} is async, or a generator, whose call computes "
            "nothing yet: write a plain function, without async, await and yield"
        )
    for instruction in get_instructions(code):
        if instruction.opname == "RAISE_VARARGS":
            place = instruction.positions
            line = shown(code, (place and place.lineno) or code.co_firstlineno)
            raise TypeError(f"{function.__name__} raises, which {way}\n{line}")
    return tuple(p.name for p in parameters)


def refuse_arrays(
    function: Callable[..., Any],
    outside: dict[str, Any],
    way: str = " (of @xdev.guvectorize or @xdev.kernel where an element needs others)",
) -> None:
    """Refuse a function that reads an array from outside.

    Compiled into it, the array would be a copy that later changes do not reach, on
    whichever device. So would one in a tuple, and one that is a module's attribute.
    """
    for label, value, line in _read(function.__code__, outside):
        if _is_array(value) or isinstance(value, list | dict | set):
            kind = type_name(value)
            raise TypeError(
                f"{function.__name__} reads {label!r} ({kind}) from outside, where "
                "compiled code reads numbers and tuples of them: pass it as an argument"
                f"{way}\n{shown(function.__code__, line)}"
            )


def refuse_neighbours(function: Callable[..., Any]) -> None:
    """Refuse a function of 16-bit floats that asks for the float next to another.

    They are computed in float32, whose neighbours are others.
    """
    outside = sources.outside(function)
    for label, value, line in _read(function.__code__, outside):
        if any(numpys(value) is each for each in NEIGHBOURS):
            raise TypeError(
                f"{function.__name__} calls {label}, but floats of 16 bits are "
                "computed in float32, in which other floats are next to them: call it "
                f"outside, as numpy.{numpys(value).__name__}, or give float32 arrays, "
                f"as x.astype(float32)\n{shown(function.__code__, line)}"
            )


def shown(code: CodeType, line: int) -> str:
    """Return a line of a function's source, with its file and number."""
    file = code.co_filename
    return f"  {file}:{line}: {linecache.getline(file, line).strip()}"


def _read(code: CodeType, outside: dict[str, Any]) -> Iterator[tuple[str, Any, int]]:
    """Return the outside values that code reads, modules' too, by name and line."""
    for name, _, attributes, line in reads(code):
        label, value = name, outside.get(name)
        yield label, value, line
        for attribute in attributes:
            if not isinstance(value, ModuleType):
                break
            label, value = f"{label}.{attribute}", vars(value).get(attribute)
            yield label, value, line


def _is_array(x: Any) -> bool:
    """Say whether a value is an array, or a tuple that holds one."""
    if isinstance(x, tuple):
        return any(map(_is_array, x))
    kind = type(x)
    if any(hasattr(kind, protocol) for protocol in PROTOCOLS):
        scalar = getattr(x, "shape", ()) == () and not hasattr(kind, "__setitem__")
        return not scalar  # of NumPy
    return False
