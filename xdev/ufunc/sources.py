"""A function's source: found, proved to be what was compiled, and compiled again."""

from __future__ import annotations

import ast
import copy
import hashlib
import linecache
import sys
from dis import get_instructions
from functools import lru_cache
from types import CellType, CodeType, FunctionType
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from xdev.compile.digests import named_globals

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
    known = {n: function.__globals__[n] for n in names if n in function.__globals__}
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        try:
            known[name] = cell.cell_contents
        except ValueError:  # not assigned yet
            continue
    return known


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


class Source(NamedTuple):
    """A function's syntax tree, and the names that its module imports.

    Python compiles a call on an imported name to other instructions.
    """

    node: ast.FunctionDef
    imports: tuple[str, ...]


#: A file's name, the number of the first line, and lines with all that ``find`` needs.
Excerpt = tuple[str, int, str]


def find(code: CodeType) -> Source | None:
    """Return the syntax tree that compiles to this code, None if there is no such."""
    return next(
        (found for text in _texts(code) if (found := _within(text, code))), None
    )


def excerpt(code: CodeType) -> Excerpt | None:
    """Return the lines of a file that a function's source is in, None if none is."""
    for text in _texts(code):
        source = _within(text, code)
        if source is None:
            continue
        for statement in ast.parse(text).body:
            first, last = _first_line(statement), statement.end_lineno or 0
            if first <= code.co_firstlineno <= last:
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


def _within(text: str, code: CodeType) -> Source | None:
    """Return the syntax tree in a text that compiles to this code."""
    functions, imports = _parsed(text)
    for node in functions:
        if _first_line(node) == code.co_firstlineno:
            source = Source(node, imports)
            if _content(compiled(source, code)) == _content(code):
                return source
    return None


def _first_line(node: ast.stmt) -> int:
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


@lru_cache(maxsize=8)
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


def compiled(source: Source, like: CodeType) -> CodeType:
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


def parts(
    made: Any, function: Callable[..., Any]
) -> tuple[Callable[..., Any], Excerpt | None]:
    """Return the function in a decorator's object, named to be found; its source."""
    if _named(made.__module__, made.__qualname__) is made:
        function.__qualname__ = made.__qualname__ + INSIDE
    return function, excerpt(function.__code__)


def owner(function: Callable[..., Any], excerpt: Excerpt | None) -> Any:
    """Return the decorator's object that a module has of a function, else None.

    The function then gets the source that it came with.
    """
    restore(function, excerpt)
    if not function.__qualname__.endswith(INSIDE):
        return None
    found = _named(function.__module__, function.__qualname__.removesuffix(INSIDE))
    return found if getattr(found, "__wrapped__", None) is function else None


def _named(module: str, name: str) -> Any:
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found
