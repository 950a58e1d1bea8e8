"""A function's source: found, proved to be what was compiled, and compiled again."""

from __future__ import annotations

import ast
import copy
import functools
import hashlib
import linecache
import sys
from dis import get_instructions
from types import CellType, CodeType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard, cast, final

import numpy as np

from xdev.compile.digests import named_globals, reads, replaced

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

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
    new = FunctionType(
        code,
        {**named_globals(function, code), **names},
        function.__name__,
        function.__defaults__,
        closure or None,
    )
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
            before = [
                s for s in ast.parse(text).body if first_line(s) <= code.co_firstlineno
            ]
            first, last = first_line(before[-1]), before[-1].end_lineno
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
    constants = [
        _content(each)
        if isinstance(each, CodeType)
        else sorted(map(repr, each))
        if isinstance(each, frozenset)
        else repr(each)
        for each in code.co_consts
    ]
    return code.co_code, code.co_names, code.co_varnames, code.co_freevars, constants


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


def pickled(
    decorated: Any,
    make: Callable[..., Any],
    function: Callable[..., Any],
    *options: Any,
) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Return how to pickle a decorator's object: ``make(function, *options)`` is one.

    The function is named so that it can be found.
    """
    if _named(decorated.__module__, decorated.__qualname__) is decorated:
        function.__qualname__ = decorated.__qualname__ + INSIDE
    parts = type(decorated), make, function, excerpt(function.__code__)
    return _unpickled, (*parts, *options)


def _unpickled(
    kind: type,
    make: Callable[..., Any],
    function: Callable[..., Any],
    excerpt: Excerpt | None,
    *options: Any,
) -> Any:
    """Return the decorator's object that a module has of a function, else a new one.

    The function then gets the source that it came with.
    """
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
WEAK = (int, float, complex)  # Python's numbers, in the order in which they grow
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
