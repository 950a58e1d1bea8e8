"""The site's API reference, made of what the public names say of themselves.

``mkdocs build`` calls the hooks at the end: they add a page for each topic, keep the
records of benchmarks out of the search, and have what a shell shows copied as code.
"""

from __future__ import annotations

import ast
import doctest
import importlib
import inspect
import re
import textwrap
from dataclasses import dataclass, field
from html import escape, unescape
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

import xdev

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

#: The facade's pages: titles, by the module that holds the functions.
TOPICS = {
    "creation": "Making arrays of data",
    "filling": "Making arrays of one value",
    "elementwise": "Elementwise functions",
    "statistical": "Sums, extremes, means",
    "manipulation": "Shapes, joins, order of axes",
    "searching": "Sorting, searching, sets",
    "linear_algebra": "Products of arrays",
    "inspection": "Data types and inspection",
}
#: Pages of what is ``xdev``'s own, too.
SHARED = {
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
SECTIONS = ("Parameters", "Attributes", "Returns", "Yields", "Raises")
#: Of a class with more methods than users are promised: those that are.
PROMISED = {
    "Pool": ("acquire", "release", "reclaim", "stats", "allocated", "reserved"),
}
WIDTH = 76  # of a line of code on a page
#: Parameters that exist for the sake of a better error.
SILENT = {"more", "rest"}
SHELL = re.compile(
    r'<div class="highlight">(<pre><span></span><code><span class="gp">.*?</pre>)',
    re.DOTALL,
)
SECTION = re.compile(r"^([A-Z]\w+)\n-{3,}\n", re.MULTILINE)
ROLE = re.compile(r":\w+:`~?\.?([\w.]+)`")


class Name(NamedTuple):
    """A public name: where it is, and what it stands for."""

    path: str
    value: Any

    @property
    def last(self) -> str:
        """The name without its module."""
        return self.path.rpartition(".")[2]

    @property
    def anchor(self) -> str:
        """Its place on a page; Markdown takes two underscores for strong text."""
        return self.path.replace("__", "")


@dataclass
class Page:
    """One page of the reference."""

    title: str
    names: list[Name] = field(default_factory=list)
    summary: str = ""


def pages() -> dict[str, Page]:
    """Return the pages of the reference by their file's name.

    Examples
    --------
    >>> [name.path for name in pages()["random"].names]
    ['xdev.random.Generator', 'xdev.random.Philox', 'xdev.random.default_rng']
    """
    found = {"ufunc": Page("Ufuncs, kernels, graphs", _names("xdev", ENGINE))}
    topics = [(key, getattr(xdev.facade, key, None)) for key in TOPICS]
    shared = [(key, getattr(xdev, key)) for key in SHARED]
    for key, module in (*topics, *shared):
        if module is not None:
            found[key] = Page((TOPICS | SHARED)[key], _names("xdev", _public(module)))
    for key, title in ROOMS.items():
        path = f"xdev.{key}"
        module = importlib.import_module(path)
        summary = (inspect.getdoc(module) or "").partition("\n\n")[0]
        found[key] = Page(title, _names(path, _public(module)), summary)
    here = [page for key, page in found.items() if key != "numpy"]
    placed = {id(name.value) for page in here for name in page.names}
    rest = [x for x in _names("xdev", _public(xdev)) if id(x.value) not in placed]
    found["constants"] = Page("Data types and constants", rest)
    return found


def _public(module: Any) -> list[str]:
    """Return the public names of a module; of errors, its exceptions."""
    if hasattr(module, "__all__"):
        return list(module.__all__)
    values = vars(module).items()
    return [name for name, value in values if inspect.isclass(value) and _raised(value)]


def _raised(value: type) -> bool:
    return issubclass(value, xdev.XdevError)


def _names(path: str, names: Iterable[str]) -> list[Name]:
    """Return names with what they stand for, modules left out."""
    module = importlib.import_module(path)
    found = []
    for name in names:
        value = getattr(module, name, None)
        if value is None and name in vars(xdev.errors):  # it is not at the top
            found.append(Name(f"xdev.errors.{name}", getattr(xdev.errors, name)))
        elif not inspect.ismodule(value):
            found.append(Name(f"{path}.{name}", value))
    return found


def signature(value: Any) -> str:
    """Return how a function is called, without its types.

    Examples
    --------
    >>> signature(xdev.sum)
    '(x, /, axis=None, dtype=None, *, keepdims=False)'
    """
    try:
        whole = inspect.signature(value)
    except (TypeError, ValueError):
        return ""
    parameters = []
    for each in whole.parameters.values():
        if each.name not in SILENT:  # *more or **rest
            long = each.default is not each.empty and len(repr(each.default)) > 20
            default = _Ellipsis() if long else each.default
            parameters.append(each.replace(annotation=each.empty, default=default))
    return str(whole.replace(parameters=parameters, return_annotation=whole.empty))


def wrapped(call: str) -> str:
    """Return a call in lines that a page shows whole.

    Examples
    --------
    >>> wrapped("f(x)")
    'f(x)'
    """
    if len(call) <= WIDTH:
        return call
    name, _, parameters = call.partition("(")
    lines = textwrap.wrap(parameters.removesuffix(")"), WIDTH - 4)
    return f"{name}(\n{textwrap.indent(chr(10).join(lines), '    ')}\n)"


class _Ellipsis:
    def __repr__(self) -> str:
        return "…"


def sections(doc: str) -> Iterator[tuple[str, str]]:
    """Yield a docstring's text under ``""``, then each section with its title.

    Examples
    --------
    >>> [title for title, _ in sections(inspect.getdoc(xdev.isin))]
    ['', 'Parameters', 'Returns', 'Raises', 'Examples']
    """
    title, start = "", 0
    for match in SECTION.finditer(doc):
        yield title, doc[start : match.start()].strip()
        title, start = match[1], match.end()
    yield title, doc[start:].strip()


def prose(text: str, links: dict[str, str]) -> str:
    """Return a docstring's text as Markdown."""

    def linked(match: re.Match[str]) -> str:
        path = match[1]
        ending = f".{path.rpartition('.')[2]}"
        short = next((one for one in links if one.endswith(ending)), "")
        target = links.get(path) or links.get(short)
        shown = f"`{path.removeprefix('xdev.')}`"
        return f"[{shown}]({target})" if target else shown

    return re.sub(r"``([^`]+)``", r"`\1`", ROLE.sub(linked, text))


def entries(text: str, links: dict[str, str]) -> str:
    """Return a section's entries as a list: names, types, what they are."""
    lines: list[str] = []
    for line in text.splitlines():
        if line and not line.startswith(" "):
            name, _, kind = line.partition(" : ")
            lines.append("")
            lines.append(f"- `{name}`" + (f": {prose(kind, links)}" if kind else ""))
            lines.append("")
        elif line.strip():
            lines.append(f"    {prose(line.strip(), links)}")
        else:
            lines.append("")
    return "\n".join(lines)


def standalone(example: str, paths: Iterable[str]) -> str:
    """Return an example with imports of the names that it has from its module.

    Examples
    --------
    >>> standalone(">>> devices()", ["xdev.devices", "xdev.Device"]).splitlines()
    ['>>> from xdev import devices', '>>> devices()']
    """
    shown = doctest.DocTestParser().get_examples(example)
    nodes = list(ast.walk(ast.parse("".join(each.source for each in shown))))
    names = [node for node in nodes if isinstance(node, ast.Name)]
    read = {node.id for node in names if isinstance(node.ctx, ast.Load)}
    made = {node.id for node in names if not isinstance(node.ctx, ast.Load)}
    imports = [n for n in nodes if isinstance(n, ast.Import | ast.ImportFrom)]
    made |= {each.asname or each.name for node in imports for each in node.names}
    wanted: dict[str, list[str]] = {}
    for module, _, last in (path.rpartition(".") for path in paths):
        if last in read - made:
            wanted.setdefault(module, []).append(last)
    lines = ["import numpy as np"] * ("np" in read - made)
    lines += [f"from {module} import {', '.join(n)}" for module, n in wanted.items()]
    return "".join(f">>> {line}\n" for line in lines) + example


def rendered(doc: str, links: dict[str, str], paths: Iterable[str] = ()) -> str:
    """Return a docstring as Markdown; ``paths`` are names that its example may use."""
    parts = []
    for title, text in sections(doc):
        if title == "Examples":
            parts.append(f"**Example**\n\n```pycon\n{standalone(text, paths)}\n```")
        elif title in SECTIONS:
            parts.append(f"**{title}**\n\n{entries(text, links)}")
        elif text:
            heading = f"**{title}**\n\n" if title else ""
            parts.append(heading + prose(text, links))
    return "\n\n".join(parts)


def described(name: Name, links: dict[str, str], paths: Iterable[str] = ()) -> str:
    """Return a public name's part of a page that has the names at ``paths``."""
    path, value = name
    heading = f"## `{path}` {{ #{name.anchor} }}"
    if isinstance(value, float | str | type(None)):
        what = {"newaxis": "Adds an axis in an index: `x[:, xdev.newaxis]`."}
        return f"{heading}\n\n{what.get(name.last, f'`{value!r}`.')}"
    if isinstance(value, type) and issubclass(value, np.generic):
        return f"{heading}\n\nNumPy's data type `numpy.{value.__name__}`."
    doc = inspect.getdoc(described_by(value)) or ""
    shown = signature(value)
    if doc.startswith(f"{name.last}("):  # as numpy.ufunc's docstrings begin
        doc = doc.partition("\n\n")[2]
    parts = [
        heading,
        f"```python\n{wrapped(path + shown)}\n```" if shown else "",
        rendered(doc, links, paths),
    ]
    kind = value if inspect.isclass(value) else type(value)
    if described_by(value) is not value or inspect.isclass(value):
        parts += [_member(path, *member, links, paths) for member in members(kind)]
    return "\n\n".join(part for part in parts if part)


def described_by(value: Any) -> Any:
    """Return what has the docstring of a public object: it, or its call."""
    own = inspect.isroutine(value) or inspect.isclass(value) or "__doc__" in vars(value)
    return value if own else type(value).__call__


def members(value: type) -> Iterator[tuple[str, Any]]:
    """Yield a class's public methods and properties that have a docstring.

    Of its bases those that are of its own room, which have no place of their own.
    """
    room = value.__module__.rpartition(".")[0]
    bases = [base for base in value.__mro__ if base.__module__.startswith(f"{room}.")]
    parts = [part for base in bases[::-1] for part in vars(base).items()]
    for name, member in dict(parts).items():
        if name.startswith("_") or not (
            inspect.isroutine(member) or _is_property(member)
        ):
            continue
        promised = name in PROMISED.get(value.__name__, (name,))
        if promised and inspect.getdoc(member):
            yield name, member


def _is_property(member: Any) -> bool:
    return isinstance(member, property) or hasattr(member, "func")


def _member(
    path: str, name: str, member: Any, links: dict[str, str], paths: Iterable[str]
) -> str:
    function = getattr(member, "__func__", member)
    shown = "" if _is_property(member) else signature(function).replace("(self, ", "(")
    shown = shown.replace("(self)", "()").replace("(cls, ", "(").replace("(cls)", "()")
    text = rendered(inspect.getdoc(member) or "", links, paths)
    anchor = f"{path}.{name}"
    return f"### `{path.rpartition('.')[2]}.{name}{shown}` {{ #{anchor} }}\n\n{text}"


def texts() -> dict[str, str]:
    """Return the reference: the text of each page, by its file's name."""
    found = pages()
    links = {
        name.path: f"{key}.md#{name.anchor}"
        for key, page in found.items()
        for name in page.names
        if key != "numpy"
    }
    whole = {key: _text(key, page, links) for key, page in found.items()}
    listed = "".join(
        f"| [{page.title}]({key}.md) | {_listed(key, page)} |\n"
        for key, page in found.items()
    )
    whole["index"] = (
        "# API reference\n\nEvery public name, by topic. `help(xdev.sort)` prints the "
        "same in a shell. What every function may raise is said here once: TypeError "
        "for what is no array, `DeviceMismatchError` for arrays of two devices, "
        "`UseAfterFreeError` for one that was freed, `DeviceUnavailableError` for a "
        f"device that cannot be used.\n\n| page | names |\n|---|---|\n{listed}"
    )
    return whole


def _listed(key: str, page: Page) -> str:
    if key == "numpy":
        return f"{len(page.names)} names"
    return " ".join(f"[`{x.last}`]({key}.md#{x.anchor})" for x in page.names)


def _text(key: str, page: Page, links: dict[str, str]) -> str:
    head = f"# {page.title}\n\n" + (
        f"{prose(page.summary, links)}\n\n" if page.summary else ""
    )
    if key == "numpy":  # they are NumPy's, and documented there
        names = " ".join(f"`{name.last}`" for name in sorted(page.names))
        return (
            f"{head}They are documented [by NumPy](https://numpy.org/doc/stable/reference/)"
            f"; [the guide](../numpy.md) says what differs.\n\n{names}\n"
        )
    paths = [name.path for name in page.names]
    parts = (described(name, links, paths) for name in page.names)
    return head + "\n\n".join(parts) + "\n"


# MkDocs' hooks.


def on_config(config: Any) -> Any:
    """Put the pages under "API reference" in the navigation."""
    made = [{page.title: f"api/{key}.md"} for key, page in pages().items()]
    for entry in config["nav"]:
        if "API reference" in entry:
            entry["API reference"] = ["api/index.md", *made]
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the pages to the site."""
    from mkdocs.structure.files import File

    for key, text in texts().items():
        files.append(File.generated(config, f"api/{key}.md", content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Mark what a shell shows; keep tables of records out of the search."""
    path = page.file.src_uri
    if path.startswith("benchmarks/") or path == "changelog.md":
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
