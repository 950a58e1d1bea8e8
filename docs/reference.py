"""The site's API reference: its pages, and the public names as mkdocstrings reads them.

Most public names are made at import (ufuncs, functions of tables, names that load
late), so griffe, which reads source, is given the objects themselves.
"""

from __future__ import annotations

import ast
import doctest
import importlib
import inspect
import re
from contextlib import suppress
from copy import copy
from functools import cached_property
from html import escape, unescape
from typing import TYPE_CHECKING, Any, NamedTuple

import griffe
import numpy as np

import xdev

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

#: Pages of names at the top, ``xdev.sum``: their titles, by the module that lists them.
TOPICS = {
    "facade.creation": "Making arrays of data",
    "facade.filling": "Making arrays of one value",
    "facade.elementwise": "Elementwise functions",
    "facade.statistical": "Sums, extremes, means",
    "facade.manipulation": "Shapes, joins, order of axes",
    "facade.searching": "Sorting, searching, sets",
    "facade.linear_algebra": "Products of arrays",
    "facade.inspection": "Data types and inspection",
    "device": "Devices and streams",
    "transfer": "Transfers",
    "errors": "Errors",
}
#: Pages of rooms: ``xdev.linalg.svd``.
ROOMS = {
    "linalg": "Linear algebra",
    "fft": "Fourier transforms",
    "random": "Random numbers",
    "memory": "Memory",
    "memory.bridges": "Bridges into other libraries",
    "timing": "Timing",
    "testing": "Testing",
    "atomic": "Atomic updates in kernels",
    "distributed": "Dask",
    "numpy": "NumPy's names",
}
ENGINE = ("vectorize", "guvectorize", "kernel", "graph")
#: Of a class with more methods than users are promised: those that are.
PROMISED = {
    "Pool": ("acquire", "release", "reclaim", "stats", "allocated", "reserved"),
}
#: Parameters that exist for the sake of a better error.
SILENT = {"more", "rest"}
SHELL = re.compile(
    r'<div class="highlight">(<pre><span></span><code><span class="gp">.*?</pre>)',
    re.DOTALL,
)
ROLE = re.compile(r":\w+:`~?\.?([\w.]+)`")
#: A docstring's line of names, and their type.
ENTRY = re.compile(r"^(\*{0,2}\w+(?:, \w+)*)(?: : (.+))?$", re.MULTILINE)
INDEX = """# API reference

Every public name, by topic. `help(xdev.sort)` prints the same in a shell. What every
function may raise is said here once: TypeError for what is no array,
`DeviceMismatchError` for arrays of two devices, `UseAfterFreeError` for one that was
freed, `DeviceUnavailableError` for a device that cannot be used.

| page | names |
|---|---|
"""
NUMPY = """They are documented [by NumPy](https://numpy.org/doc/stable/reference/);
[the guide](../numpy.md) says what differs.

"""


class Page(NamedTuple):
    """One page of the reference: its public objects by their paths."""

    title: str
    names: dict[str, Any]
    summary: str = ""


def pages() -> dict[str, Page]:
    """Return the pages of the reference by their file's name.

    Examples
    --------
    >>> list(pages()["random"].names)
    ['xdev.random.Generator', 'xdev.random.Philox', 'xdev.random.default_rng']
    """
    found = {"ufunc": Page("Ufuncs, kernels, graphs", _objects("xdev", ENGINE))}
    for key, title in (TOPICS | ROOMS).items():
        module = importlib.import_module(f"xdev.{key}")
        if key in TOPICS:
            page = Page(title, _objects("xdev", module.__all__))
        else:
            summary = inspect.getdoc(module).partition("\n\n")[0]
            page = Page(title, _objects(f"xdev.{key}", module.__all__), summary)
        found[key.removeprefix("facade.")] = page
    listed = [page.names for key, page in found.items() if key != "numpy"]
    placed = {id(value) for names in listed for value in names.values()}
    rest = _objects("xdev", xdev.__all__).items()
    values = {path: value for path, value in rest if id(value) not in placed}
    return found | {"constants": Page("Data types and constants", values)}


def _objects(path: str, names: Iterable[str]) -> dict[str, Any]:
    """Return public objects by their paths, modules left out."""
    found = {}
    for name in names:
        module = path if hasattr(importlib.import_module(path), name) else "xdev.errors"
        value = getattr(importlib.import_module(module), name)
        if not inspect.ismodule(value):
            found[f"{module}.{name}"] = value
    return found


class PublicNames(griffe.Extension):
    """Gives griffe the public objects of ``xdev`` in the place of their source."""

    def on_module_members(self, *, mod: griffe.Module, **_: Any) -> None:
        """Leave the source's lists of names, which are computed."""
        mod.exports = None

    def on_package(self, *, pkg: griffe.Module, loader: Any, **_: Any) -> None:
        """Put each public object where the reference's pages name it."""
        rooms = [page.names for key, page in pages().items() if key != "numpy"]
        every = [path for names in rooms for path in names]
        # What types and errors link to: classes, and not what Python calls so, too.
        scope = griffe.Module("xdev", filepath=pkg.filepath)
        for path, value, names in ((*item, x) for x in rooms for item in x.items()):
            found = described(path, value)
            pkg.set_member(path.split(".")[1:], found)
            if found.is_class:
                scope.members[found.name] = found
            for each in (found, *found.members.values()):
                doc = each.docstring
                doc.value = linked(standalone(doc.value, names), every)
                doc.parser = loader.docstring_parser
                doc.parser_options = loader.docstring_options
                doc.parent = copy(each)
                doc.parent.parent = scope
                _as_written(doc)


def described(path: str, value: Any) -> griffe.Object:
    """Return a public object as griffe has it: as a class if it has members.

    Examples
    --------
    >>> described("xdev.sum", xdev.sum).signature()
    'sum(x, /, axis=None, dtype=None, *, keepdims=False)'
    """
    name = path.rpartition(".")[2]
    is_class = inspect.isclass(value)
    is_dtype = is_class and issubclass(value, np.generic)
    if is_dtype or not callable(value):
        text = "Adds an axis in an index: ``x[:, xdev.newaxis]``." * (value is None)
        shown = f"numpy.{value.__name__}" if is_dtype else repr(value)
        return griffe.Attribute(name, value=shown, docstring=griffe.Docstring(text))
    own = is_class or inspect.isroutine(value) or "__doc__" in vars(value)
    text = inspect.getdoc(value if own else type(value).__call__) or ""
    if text.startswith(f"{name}("):  # as numpy.ufunc's docstrings begin
        text = text.partition("\n\n")[2]
    if own and not is_class:
        return _function(name, value, text)
    found = griffe.Class(name, docstring=griffe.Docstring(text))
    with suppress(ValueError):  # an error has no signature
        found["__init__"] = _function("__init__", value)
    for key, member in members(value if is_class else type(value)):
        text = inspect.getdoc(member)
        if inspect.isroutine(member):
            found[key] = _function(key, getattr(member, "__func__", member), text)
        else:
            get = getattr(member, "fget", None) or member.func
            kind = inspect.signature(get).return_annotation
            kind = getattr(kind, "__name__", kind)  # most are strings
            found[key] = griffe.Attribute(
                key, annotation=kind, docstring=griffe.Docstring(text)
            )
    return found


def _function(name: str, value: Any, text: str = "") -> griffe.Function:
    """Return a callable without its types, which the docstring says in words."""
    parameters = [
        griffe.Parameter(
            each.name,
            kind=griffe.ParameterKind(each.kind.description),
            default=None if each.default is each.empty else _shown(each.default),
        )
        for each in inspect.signature(value).parameters.values()
        if each.name not in SILENT
    ]
    return griffe.Function(
        name,
        parameters=griffe.Parameters(*parameters),
        docstring=griffe.Docstring(text),
    )


def _shown(default: Any) -> str:
    """Return a parameter's default as code, where it is short."""
    text = getattr(default, "__name__", repr(default))
    return "..." if len(text) > 20 or text.startswith("<") else text


def members(value: type) -> Iterator[tuple[str, Any]]:
    """Yield a class's public methods and properties that have a docstring.

    Of its bases those that are of its own room, which have no place of their own.
    """
    room = value.__module__.rpartition(".")[0]
    bases = [base for base in value.__mro__ if base.__module__.startswith(f"{room}.")]
    parts = [part for base in bases[::-1] for part in vars(base).items()]
    for name, member in dict(parts).items():
        promised = name in PROMISED.get(value.__name__, (name,)) and name[0] != "_"
        known = isinstance(member, property | cached_property)
        if promised and (known or inspect.isroutine(member)) and inspect.getdoc(member):
            yield name, member


def linked(text: str, paths: Iterable[str]) -> str:
    """Return a docstring with Markdown's links in the place of Sphinx's roles.

    Examples
    --------
    >>> linked("As :func:`~memory.free`, or :meth:`close`.", ["xdev.memory.free"])
    'As [`memory.free`][xdev.memory.free], or `close`.'
    """

    def link(match: re.Match[str]) -> str:
        name = match[1].removeprefix("xdev.")
        path = next((path for path in paths if path.endswith(f".{name}")), None)
        return f"[`{name}`][{path}]" if path else f"`{name}`"

    return ROLE.sub(link, text)


def standalone(doc: str, paths: Iterable[str]) -> str:
    r"""Return a docstring whose example imports what it has from its own module.

    Examples
    --------
    >>> doc = "Examples\n--------\n>>> devices()"
    >>> standalone(doc, ["xdev.devices", "xdev.Device"]).splitlines()[2:]
    ['>>> from xdev import devices', '>>> devices()']
    """
    text, title, example = doc.partition("Examples\n--------\n")
    shown = doctest.DocTestParser().get_examples(example)
    nodes = list(ast.walk(ast.parse("".join(each.source for each in shown))))
    names = [node for node in nodes if isinstance(node, ast.Name)]
    read = {node.id for node in names if isinstance(node.ctx, ast.Load)}
    read -= {node.id for node in names if isinstance(node.ctx, ast.Store)}
    read -= {node.asname or node.name for node in nodes if isinstance(node, ast.alias)}
    wanted: dict[str, list[str]] = {}
    for module, _, last in (path.rpartition(".") for path in paths):
        if last in read:
            wanted.setdefault(module, []).append(last)
    lines = ["import numpy as np"] * ("np" in read)
    lines += [f"from {module} import {', '.join(n)}" for module, n in wanted.items()]
    return text + title + "".join(f">>> {line}\n" for line in lines) + example


def _as_written(doc: griffe.Docstring) -> None:
    """Have names that share a text together, and types in the docstring's words."""
    for section in doc.parsed:
        if section.kind.value in {"parameters", "attributes"}:
            entries = {entry.name.partition(",")[0]: entry for entry in section.value}
            section.value.clear()
            for names, kind in ENTRY.findall(doc.value):
                if entry := entries.pop(names.partition(",")[0], None):
                    entry.name, entry.annotation, entry.value = names, kind, None
                    section.value.append(entry)
        elif section.kind.value == "raises":
            for entry in section.value:
                if isinstance(entry.annotation, griffe.ExprTuple):
                    entry.annotation.implicit = True  # without parentheses


# MkDocs' hooks.


def on_files(files: Any, config: Any) -> Any:
    """Add the pages to the site, and to its navigation under "API reference"."""
    from mkdocs.structure.files import File

    texts, nav = {"index": INDEX}, ["api/index.md"]
    for key, (title, names, summary) in pages().items():
        lasts = {path.rpartition(".")[2]: path for path in names}
        listed = " ".join(f"[`{last}`][{path}]" for last, path in lasts.items())
        text = "\n".join(f"::: {path}" for path in names)
        if key == "numpy":
            listed = f"{len(lasts)} names"
            text = NUMPY + " ".join(f"`{last}`" for last in sorted(lasts))
        texts[key] = f"# {title}\n\n{summary}\n\n{text}\n"
        texts["index"] += f"| [{title}]({key}.md) | {listed} |\n"
        nav.append({title: f"api/{key}.md"})
    for key, text in texts.items():
        files.append(File.generated(config, f"api/{key}.md", content=text))
    for entry in config["nav"]:
        if "API reference" in entry:
            entry["API reference"] = nav
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Mark what a shell shows; keep tables of records out of the search."""
    path = page.file.src_uri
    if path.startswith("benchmarks") or path == "changelog.md":
        page.meta["search"] = {"exclude": True}
    # What was run for the page has names of the run's: a shell's are "<stdin>".
    markdown = re.sub("<doctest [^>]*>", "<stdin>", markdown)
    return markdown.replace("```python\n>>> ", "```pycon\n>>> ")


def on_page_content(html: str, **_: Any) -> str:
    """Have a shell's text copied without prompts and outputs, to be pasted."""
    return SHELL.sub(_pasteable, html)


def _pasteable(match: re.Match[str]) -> str:
    shown = unescape(re.sub("<[^>]+>", "", match[1]))
    examples = doctest.DocTestParser().get_examples(shown)
    # A shell ends a definition at an empty line.
    sources = [x.source + "\n" * ("\n " in x.source) for x in examples]
    text = escape("".join(sources).rstrip("\n")).replace("\n", "&#10;")
    return f'<div class="highlight" data-copy="{text}">{match[1]}'
