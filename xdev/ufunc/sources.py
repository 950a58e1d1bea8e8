"""A function's source, proved to be what was compiled; its names and parameters."""

from __future__ import annotations

import ast
import copy
import functools
import hashlib
import inspect
import linecache
import sys
from dis import get_instructions
from types import CellType, CodeType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard, cast, final

import numpy as np

from xdev.compile.digests import named_globals, reads, replaced
from xdev.errors import quoted, type_name
from xdev.ufunc.dtypes import WEAK, dtype_of, fits, resolve

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from xdev.compile.formulas import Dtypes

GLOBALS = frozenset({"LOAD_GLOBAL", "LOAD_NAME"})
COMMAND = "<string>"  # the file of what ``python -c`` runs
FUTURES = 0x1FF0000  # the flags of ``from __future__ import …`` in a code object


def outside(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the globals and closure variables that the function names."""
    code = function.__code__
    # Of co_names, which has the names of attributes as well.
    names = (i.argval for i in get_instructions(code) if i.opname in GLOBALS)
    values = {n: function.__globals__[n] for n in names if n in function.__globals__}
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        try:
            values[name] = cell.cell_contents
        except ValueError:  # not assigned yet
            continue
    return values


def rebuilt(
    function: Callable[..., Any], code: CodeType, names: dict[str, Any]
) -> Callable[..., Any]:
    """Return the function with other code, and other values for some outside names."""
    cells = dict(
        zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    )
    closure = tuple(
        CellType(names[name]) if name in names else cells[name]
        for name in code.co_freevars
    )
    scope, defaults = named_globals(function, code) | names, function.__defaults__
    new = FunctionType(code, scope, function.__name__, defaults, closure)
    new.__qualname__, new.__module__ = function.__qualname__, function.__module__
    return new


def describe(
    decorated: Any, function: Callable[..., Any], form: object, **own: object
) -> None:
    """Give what a decorator made of a function its name, docstring and module.

    Without a docstring it has the function's ``form``, in brackets.
    """
    functools.update_wrapper(decorated, function)
    vars(decorated).update(
        own,
        __qualname__=function.__qualname__.removesuffix(INSIDE),
        __doc__=function.__doc__ or f"{function.__name__}{form}",
    )


def undecorated(function: Any, own: type) -> Any:
    """Return the Python function in what Numba or a decorator of xdev made of it.

    That decorator has the functions of a class of its ``own``; no other is undone.
    """
    made = getattr(function, "definition", function)
    if isinstance(made, own):
        function = cast("Any", made).function
    return getattr(function, "py_func", function)


class FunctionSource(NamedTuple):
    """A function's syntax tree, and the names that its module imports.

    Python compiles a call on an imported name to other instructions.
    """

    node: ast.FunctionDef
    imports: tuple[str, ...]


#: A file's name, the number of the first line, and lines with all that ``find`` needs.
Excerpt = tuple[str, int, str]


def find(code: CodeType) -> FunctionSource | None:
    """Return the syntax tree that compiles to this code, None if there is no such."""
    return next(
        (source for text in _texts(code) if (source := _within(text, code))), None
    )


def excerpt(code: CodeType) -> Excerpt | None:
    """Return the lines of a file that a function's source is in, None if none is."""
    for text in _texts(code):
        if (source := _within(text, code)) is not None:
            body, line = ast.parse(text).body, code.co_firstlineno
            own = [each for each in body if first_line(each) <= line][-1]
            first, last = first_line(own), own.end_lineno
            lines = text.split("\n")[first - 1 : last]
            lines += [f"import {name}" for name in source.imports]
            return code.co_filename, first, "\n".join(lines)
    return None


def restore(function: Callable[..., Any], excerpt: Excerpt | None) -> None:
    """Give a function that has no source here the one that it came with."""
    code = function.__code__
    if excerpt is None or find(code):
        return
    file, first, lines = excerpt
    text = "\n" * (first - 1) + lines
    if _within(text, code):
        name = f"<{file} {hashlib.sha256(text.encode()).hexdigest()[:16]}>"
        kept = [f"{line}\n" for line in text.split("\n")]
        linecache.cache[name] = len(text), None, kept, name
        function.__code__ = code.replace(co_filename=name)


@functools.lru_cache(maxsize=8)
def _within(text: str, code: CodeType) -> FunctionSource | None:
    """Return the syntax tree in a text that compiles to this code."""
    functions, imports = _parsed(text)
    for node in functions:
        if first_line(node) != code.co_firstlineno:
            continue
        for names in (imports, ()):  # IPython compiles each statement of a cell alone
            source = FunctionSource(node, names)
            if _content(compiled(source, code)) == _content(code):
                return source
    return None


def first_line(node: ast.stmt) -> int:
    """Return the number of a node's first line, that of a decorator if it has one."""
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(each.lineno for each in decorators)])


def _texts(code: CodeType) -> Iterator[str]:
    """Return the texts that code may come from; a wrong one compiles to another."""
    yield "".join(linecache.getlines(code.co_filename))
    shell = getattr(linecache, "_getlines_from_code", None)  # from Python 3.14 on
    if shell is not None:
        yield "".join(shell(code))
    if code.co_filename == COMMAND:
        yield from sys.orig_argv[1:]


@functools.lru_cache(maxsize=8)
def _parsed(text: str) -> tuple[tuple[ast.FunctionDef, ...], tuple[str, ...]]:
    """Return a file's functions, and the names that its module imports.

    A lambda is a function whose body returns it: both compile to the same code.
    """
    try:
        tree = ast.parse(text)
    except SyntaxError:  # the file changed since it was loaded
        return (), ()
    names: set[str] = set()
    scope: list[ast.AST] = [tree]
    while scope:
        node = scope.pop()
        if isinstance(node, ast.Import | ast.ImportFrom):
            names.update(a.asname or a.name.partition(".")[0] for a in node.names)
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            scope.extend(ast.iter_child_nodes(node))
    functions = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Lambda):
            body = ast.copy_location(ast.Return(node.body), node.body)
            whole = ast.parse("def function(): pass").body[0]  # with all its fields
            assert isinstance(whole, ast.FunctionDef)  # noqa: S101
            whole.name, whole.args, whole.body = "<lambda>", node.args, [body]
            functions.append(ast.copy_location(whole, node))
        elif isinstance(node, ast.FunctionDef):
            functions.append(node)
    return tuple(functions), tuple(names - {"*"})


def _content(code: CodeType) -> tuple[object, ...]:
    """Return what code does, and on what names, to be compared.

    Constants are told by their texts: 0.0 equals -0.0, and (1,) equals (True,).
    """

    def told(x: object) -> object:
        if isinstance(x, CodeType):
            return _content(x)
        return sorted(map(repr, x)) if isinstance(x, frozenset) else repr(x)

    names = code.co_names, code.co_varnames, code.co_freevars
    return code.co_code, names, [*map(told, code.co_consts)]


def compiled(source: FunctionSource, like: CodeType) -> CodeType:
    """Compile a function alone, inside one whose arguments are its closure."""
    node = copy.copy(source.node)
    node.args = copy.copy(node.args)
    node.args.defaults = []
    node.args.kw_defaults = [None] * len(node.args.kwonlyargs)
    node.decorator_list, node.returns = [], None
    outer = cast("ast.FunctionDef", ast.parse("def closure(): pass").body[0])
    outer.args.args = [ast.arg(name) for name in like.co_freevars]
    outer.body = [node]
    if node.name not in like.co_freevars:
        outer.body.insert(0, ast.Global([node.name]))  # as one that calls itself has it
    imports = [ast.Import([ast.alias(name)]) for name in source.imports]
    module = ast.fix_missing_locations(ast.Module([*imports, outer], []))
    flags = like.co_flags & FUTURES
    code: CodeType = compile(module, like.co_filename, "exec", flags, dont_inherit=True)
    for _ in range(2):  # the module holds ``closure``, which holds the function
        code = next(c for c in code.co_consts if isinstance(c, CodeType))
    return code


# Pickles of what a decorator made of a Python function: with that function inside.
#
# ``pickle`` takes functions by name, tools for other machines (cloudpickle, and so
# Dask) take those of ``__main__`` and closures along by value. Both find a decorated
# function at ``name.__wrapped__``, since the name itself is the decorator's object.
#
# The source goes along, by which dtypes inside are found: not all machines have the
# file.

INSIDE = ".__wrapped__"
Reduced = tuple[Any, tuple[Any, ...]]  # as pickle takes it


def pickled(decorated: Any, make: Any, function: Any, *options: Any) -> Reduced:
    """Return how to pickle what ``make(function, *options)`` of a decorator made."""
    if _named(decorated.__module__, decorated.__qualname__) is decorated:
        function.__qualname__ = decorated.__qualname__ + INSIDE
    parts = type(decorated), make, function, excerpt(function.__code__)
    return _unpickled, (*parts, *options)


def _unpickled(
    kind: type, make: Any, function: Any, excerpt: Excerpt | None, *options: Any
) -> Any:
    """Return the decorator's object that a module has of a function, else a new one."""
    restore(function, excerpt)
    if function.__qualname__.endswith(INSIDE):
        name = function.__qualname__.removesuffix(INSIDE)
        decorated: Any = _named(function.__module__, name)
        own = getattr(decorated, "__wrapped__", None)
        if type(decorated) is kind and own is function:
            return decorated
    return make(function, *options)


def _named(module: str, name: str) -> Any:
    value: Any = sys.modules.get(module)
    for part in name.split("."):
        value = getattr(value, part, None)
    return value


# The names that a function's source reads, and those of the constants put into it.

# What xdev's names mean inside functions: NumPy's functions, which compilers know.
#
# ``xdev.sin`` and ``xdev.numpy.sin`` choose a library by the array that they are
# given; of one number, in compiled code, they are ``numpy.sin``. What compilers have
# of arrays alone is written in other words.

# Whose functions compilers know.
LIBRARIES = ("numpy", "numba", "xdev", "math", "cmath", "operator", "builtins")
FACADE = "xdev.facade"  # where the standard's names have theirs; a room above
NAMES = "xdev.numpy.names"  # and NumPy's
MODULES = "xdev", "xdev.numpy"  # in which users find both


def numpys(value: Any) -> Any:
    """Return NumPy's function of a value's name where it is xdev's, else the value.

    Examples
    --------
    >>> import xdev
    >>> numpys(xdev.sin), numpys(len)
    (<ufunc 'sin'>, <built-in function len>)
    """
    name = getattr(value, "__name__", None)
    if type(name) is str and vars(sys.modules[FACADE]).get(name) is value:
        return getattr(np, name, value)
    if getattr(value, "__module__", None) == NAMES:
        wrapped = getattr(value, "__wrapped__", None)
        # What `functools.wraps` such a function has its name and module as well.
        if wrapped is not None and getattr(np, str(name), None) is wrapped:
            return wrapped
    return value


def is_plain(value: object) -> TypeGuard[FunctionType]:
    """Say whether a value is a function of the user's that no compiler knows yet.

    A user's that ``functools.wraps`` a library's has but the name of that one's module.
    """
    if type(value) is not FunctionType:
        return False
    module: str = value.__globals__.get("__name__", "")
    of_library = module.partition(".")[0] in LIBRARIES
    return not of_library and id(value) not in replaced()


def inside(code: CodeType, outside: dict[str, Any]) -> dict[str, Any]:
    """Return the outside values of code without a source as compiled code reads them.

    xdev's modules become ones of what is read, with NumPy's functions.
    """
    values = {name: numpys(value) for name, value in outside.items()}
    for name, _, attributes, _ in reads(code):
        owner = outside.get(name)
        ours = isinstance(owner, ModuleType) and owner.__name__ in MODULES
        if ours and attributes:
            if values[name] is owner:
                values[name] = ModuleType(owner.__name__)
            value = getattr(owner, attributes[0], None)
            vars(values[name])[attributes[0]] = numpys(value)
    return values


def bound_names(tree: ast.AST) -> set[str]:
    """Return the names that a function's source assigns, and its parameters'."""
    nodes = [*ast.walk(tree)]
    stored = (n for n in nodes if isinstance(n, ast.Name))
    names = {n.id for n in stored if isinstance(n.ctx, ast.Store)}
    return names | {n.arg for n in nodes if isinstance(n, ast.arg)}


@final
class FunctionScope:
    """What names in a function's source stand for, by its outside values."""

    def __init__(self, tree: ast.AST, outside: dict[str, Any]) -> None:
        self._local = bound_names(tree)
        self._outside = {k: v for k, v in outside.items() if k not in self._local}
        #: The names that were put in, with their values.
        self.constants: dict[str, Any] = {}

    def name(self, node: ast.expr, name: str, value: object) -> ast.Name:
        """Return a global name, free in the function, that stands for the value."""
        safe = "xdev_" + "".join(c if c.isalnum() else "_" for c in name)
        while self.constants.setdefault(safe, value) is not value and (
            type(self.constants[safe]) is not type(value)
            or self.constants[safe] != value
        ):
            safe += "_"
        return ast.copy_location(ast.Name(safe, ast.Load()), node)

    def builtin(self, node: ast.expr) -> str:
        """Return the name of a builtin that a node stands for, or ''."""
        name = node.id if isinstance(node, ast.Name) else ""
        return "" if name in self._local or name in self._outside else name

    def static(self, node: ast.expr) -> Any:
        """Return what an outside name or a module's attribute means, else None."""
        return numpys(self.value(node))

    def value(self, node: ast.expr) -> Any:
        """Return the value of an outside name or a module's attribute, else None."""
        if isinstance(node, ast.Name):
            return self._outside.get(node.id, self.constants.get(node.id))
        if isinstance(node, ast.Attribute):
            owner = self.value(node.value)
            if isinstance(owner, ModuleType):
                return getattr(owner, node.attr, None)
        return None

    def number(self, node: ast.expr) -> complex | None:
        """Return the Python number that the node stands for, else None."""
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
            bare = self.number(node.operand)
            negative = isinstance(node.op, ast.USub)
            return -bare if bare is not None and negative else bare
        value: Any
        value = node.value if isinstance(node, ast.Constant) else self.static(node)
        return value if type(value) in WEAK else None


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
        source = find(code)
        used, everywhere = list[str](), list[str]()
        if source is not None:
            everywhere += _names(source.node)
            scope = FunctionScope(source.node, outside(function))
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
) -> tuple[str, ...]:
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
            line = (place and place.lineno) or code.co_firstlineno
            raise refusal(function, line, f"raises, which {way}")
    return tuple(p.name for p in parameters)


def refuse_arrays(function: Callable[..., Any], outside: dict[str, Any]) -> None:
    """Refuse a function that reads an array from outside, in tuples and modules too.

    Compiled into it, the array would be a copy that later changes do not reach.
    """
    for label, value, line in _read(function.__code__, outside):
        if _is_array(value) or isinstance(value, list | dict | set):
            text = (
                f"reads {label!r} ({type_name(value)}) from outside, where compiled "
                "code reads numbers and tuples of them: pass it as an argument (of "
                "@xdev.guvectorize or @xdev.kernel where an element needs others)"
            )
            raise refusal(function, line, text)


def refuse_neighbours(function: Callable[..., Any]) -> None:
    """Refuse a function of 16-bit floats that asks for the float next to another.

    They are computed in float32, whose neighbours are others.
    """
    for label, value, line in _read(function.__code__, outside(function)):
        if any(numpys(value) is each for each in NEIGHBOURS):
            text = (
                f"calls {label}, but floats of 16 bits are computed in float32, whose "
                f"neighbours are others: call numpy.{numpys(value).__name__} outside, "
                "or give float32 arrays, as x.astype(float32)"
            )
            raise refusal(function, line, text)


def refusal(function: Any, line: int, text: str, kind: Any = TypeError) -> Exception:
    """Return the error for what a function does, with the line of its source."""
    file = function.__code__.co_filename
    source = f"  {file}:{line}: {linecache.getline(file, line).strip()}"
    error: Exception = kind(f"{function.__name__} {text}\n{source}")
    return error


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
