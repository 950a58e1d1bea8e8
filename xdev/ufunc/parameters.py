"""The parameters of a scalar function, and what it may not be."""

from __future__ import annotations

import ast
import inspect
import linecache
from dis import get_instructions, opmap
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np

from xdev.ufunc import sources
from xdev.ufunc.sources import numpys

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import CodeType

RAISE = opmap["RAISE_VARARGS"]  # every other byte of code is an instruction
DEFERRED = {
    inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR: "an async function",
    inspect.CO_GENERATOR: "a generator function",
}
ATTRIBUTES = frozenset({"LOAD_ATTR", "LOAD_METHOD"})
MEMBERS = ATTRIBUTES | {"LOAD_CONST"}  # no outside names
NEIGHBOURS = np.nextafter, np.spacing
PROTOCOLS = ("__dlpack__", "__array_interface__", "__cuda_array_interface__")


def counted(
    function: Callable[..., Any], *, inside: bool
) -> tuple[int, tuple[Any, ...]]:
    """Return the number of inputs and the defaults of the last of them.

    Parameters
    ----------
    function : callable
        What is decorated, or called there.
    inside : bool
        Whether a ufunc calls it: then it may have none.

    Raises
    ------
    TypeError
        It is no Python function of plain parameters, it is async or a generator, or it
        raises.
    """
    parameters = positional(function)
    if not (parameters or inside) or parameters is None:
        name = getattr(function, "__name__", repr(function))
        others = "(no *args, **kwargs or keyword-only ones)"
        raise TypeError(
            f"a ufunc calls {name}, which may have positional parameters alone {others}"
            if inside
            else "vectorize needs a Python function of one or more positional "
            f"parameters {others}, not {name}"
        )
    refuse_deferred(function)
    refuse_raising(
        function,
        "a ufunc cannot do per element: return math.nan, or check the arrays before "
        "the call",
    )
    return len(parameters), function.__defaults__ or ()


def positional(function: Any) -> list[inspect.Parameter] | None:
    """Return a Python function's parameters, None where one is not positional."""
    plain = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    python = inspect.isfunction(function)
    found = [*inspect.signature(function).parameters.values()] if python else []
    return found if python and all(p.kind in plain for p in found) else None


def refuse_deferred(function: Callable[..., Any]) -> None:
    """Refuse a function whose call computes nothing yet.

    Raises
    ------
    TypeError
        It is a coroutine or a generator.
    """
    for flags, what in DEFERRED.items():
        if function.__code__.co_flags & flags:
            raise TypeError(
                f"{function.__name__} is {what}, whose call computes nothing yet: "
                "write a plain function, without async, await and yield"
            )


def refuse_raising(function: Callable[..., Any], way: str) -> None:
    """Refuse a function that raises; ``way`` says who cannot, and what to do.

    Raises
    ------
    TypeError
        It does; the text has the line.
    """
    code = function.__code__
    if RAISE not in code.co_code[::2]:
        return
    places = (x.positions for x in get_instructions(code) if x.opcode == RAISE)
    place = next(places, None)
    line = (place and place.lineno) or code.co_firstlineno
    raise TypeError(f"{function.__name__} raises, which {way}\n{shown(code, line)}")


def refuse_arrays(
    function: Callable[..., Any],
    outside: dict[str, Any],
    way: str = ", of @xdev.guvectorize or @xdev.kernel where an element needs others",
) -> None:
    """Refuse a function that reads an array from outside.

    Compiled into it, the array would be a copy that later changes do not reach, on
    whichever device. So would one in a tuple, and one that is a module's attribute.

    Parameters
    ----------
    function : callable
        The Python function.
    outside : dict
        The values of its globals and closure variables.
    way : str
        What the text says after "pass it as an argument".

    Raises
    ------
    TypeError
        It does; the text has the line.
    """
    if not any(
        isinstance(x, ModuleType | tuple) or _is_array(x) for x in outside.values()
    ):
        return
    for label, value, line in _read(function.__code__, outside):
        if _is_array(value) or (isinstance(value, tuple) and _holds_array(value)):
            what = "an array of the tuple" if isinstance(value, tuple) else "the array"
            raise TypeError(
                f"{function.__name__} reads {what} {label!r} from outside: pass it as "
                f"an argument{way}\n{shown(function.__code__, line)}"
            )


def refuse_lost(function: Callable[..., Any], numbers: Iterable[str]) -> None:
    """Refuse a function that adds to a number which it was given, and never reads it.

    The caller's number stays as it is, as in Python, where arrays change.

    Parameters
    ----------
    function : callable
        The Python function.
    numbers : iterable of str
        Its parameters that are numbers.

    Raises
    ------
    TypeError
        There is such a number; the text has the line.
    """
    source = sources.find(function.__code__)
    nodes = [] if source is None else [*ast.walk(source.node)]
    for name in numbers:
        own = [node for node in nodes if _adds(node, name)]
        within = {each for node in own for each in ast.walk(node)}
        if own and not any(_reads(node, name) for node in nodes if node not in within):
            raise TypeError(
                f"{function.__name__}: {name} is a number, which {name} += … changes "
                "for one point alone, and nothing reads it: give an array and write "
                f"into it, in a kernel by xdev.atomic.add({name}, 0, value)\n"
                f"{shown(function.__code__, own[0].lineno)}"
            )


def _adds(node: ast.AST, name: str) -> TypeGuard[ast.stmt]:
    """Say whether a statement is ``name += …``, or ``name = name + …``."""
    match node:
        case ast.AugAssign(target=ast.Name(id=found)):
            return found == name
        case ast.Assign(targets=[ast.Name(id=found)]):
            return found == name and any(_reads(x, name) for x in ast.walk(node.value))
    return False


def _reads(node: ast.AST, name: str) -> bool:
    return (
        isinstance(node, ast.Name)
        and node.id == name
        and isinstance(node.ctx, ast.Load)
    )


def refuse_neighbours(function: Callable[..., Any]) -> None:
    """Refuse a function of 16-bit floats that asks for the float next to another.

    They are computed in float32, whose neighbours are others.

    Raises
    ------
    TypeError
        It does; the text has the line.
    """
    outside = sources.outside(function)
    for label, value, line in _read(function.__code__, outside):
        if any(numpys(value) is each for each in NEIGHBOURS):
            called = "spacing(x)" if numpys(value) is np.spacing else "nextafter(x, y)"
            raise TypeError(
                f"{function.__name__} calls {label}, but floats of 16 bits are "
                "computed in float32, in which other floats are next to them: call it "
                f"outside, as numpy.{called}, or give float32 arrays, as "
                "x.astype(float32)\n"
                f"{shown(function.__code__, line)}"
            )


def shown(code: CodeType, line: int) -> str:
    """Return a line of a function's source, with its file and number."""
    file = code.co_filename
    return f"  {file}:{line}: {linecache.getline(file, line).strip()}"


def _read(code: CodeType, outside: dict[str, Any]) -> Iterator[tuple[str, Any, int]]:
    """Return the outside values that code reads, modules' too, by name and line."""
    label, value, line = "", None, code.co_firstlineno
    for instruction in get_instructions(code):
        place = instruction.positions  # starts_line is no number since Python 3.13
        line = (place and place.lineno) or line
        operation, name = instruction.opname, str(instruction.argval)
        if operation in ATTRIBUTES and isinstance(value, ModuleType):
            label, value = f"{label}.{name}", vars(value).get(name)
        elif operation.startswith("LOAD_") and operation not in MEMBERS:
            label, value = name, outside.get(name)
        else:
            value = None
        yield label, value, line


def _holds_array(values: tuple[Any, ...]) -> bool:
    return any(
        _holds_array(x) if isinstance(x, tuple) else _is_array(x) for x in values
    )


def _is_array(x: Any) -> bool:
    kind = type(x)
    if any(hasattr(kind, protocol) for protocol in PROTOCOLS):
        scalar = getattr(x, "shape", ()) == () and not hasattr(kind, "__setitem__")
        return not scalar  # of NumPy
    return False
