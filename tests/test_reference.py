"""The site's API reference has every public name, with what it says of itself."""

import doctest
import importlib
import inspect
import io
import re
import sys
from pathlib import Path

import griffe
import numpy as np
import pytest

import xdev
from xdev import errors, facade

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "docs"))

import reference  # noqa: E402 - the site's hook, which is in no package

pytest.importorskip("distributed")  # whose names are there, too
PAGES = {key: page.names for key, page in reference.pages().items()}
PACKAGE = griffe.load(
    "xdev",
    extensions=griffe.load_extensions(reference.PublicNames),
    search_paths=[ROOT],
    docstring_parser="numpy",
    allow_inspection=False,
)
#: What the pages show of each name, and the sections of its docstring.
SHOWN = {
    path: PACKAGE[path.removeprefix("xdev.")]
    for key, names in PAGES.items()
    for path in names
    if key != "numpy"
}
SECTIONS = {
    path: {section.kind.value for section in shown.docstring.parsed if section.value}
    for path, shown in SHOWN.items()
}
#: Rooms that are reached by their names: ``xdev.linalg.svd``.
ROOMS = (
    *("atomic", "distributed", "fft", "linalg", "memory", "memory.bridges", "numpy"),
    *("random", "testing", "timing"),
)


def test_the_sites_search_keeps_names_with_to_and_of_whole():
    site = (ROOT / "mkdocs.yml").read_text()
    separator = re.search("^ +separator: '(.*)'$", site, re.MULTILINE)[1]
    words = {path: re.split(separator, path) for path in SHOWN}
    assert words["xdev.to_device"] == ["xdev", "to_device"]
    assert words["xdev.memory.set_limit"] == ["xdev", "memory", "set", "limit"]
    assert not [path for path in words if {"to", "of"} & {*words[path]}]


def test_every_public_name_has_a_place():
    placed = {id(value) for names in PAGES.values() for value in names.values()}
    paths = {path for names in PAGES.values() for path in names}
    for name in xdev.__all__:
        value = getattr(xdev, name)
        assert inspect.ismodule(value) or id(value) in placed, name
    for room in ROOMS:
        module = importlib.import_module(f"xdev.{room}")
        for name in module.__all__:
            module_of_it = inspect.ismodule(getattr(module, name))
            assert module_of_it or f"xdev.{room}.{name}" in paths, (room, name)
    for name in errors.__all__:
        assert id(getattr(errors, name)) in placed, name
    topics = inspect.getmembers(facade, inspect.ismodule)
    assert {name for name, room in topics if hasattr(room, "__all__")} <= set(PAGES)


def test_tab_offers_what_objects_are_documented_to_have():
    source = xdev.testing.FakeSource(capacity=1 << 20)
    offered = {
        xdev.add: {*dir(np.add), "reorderable", "target"},
        xdev.memory.Pool(source): {*reference.PROMISED["Pool"], "name"},
    }
    for value, names in offered.items():
        shown = {name for name in dir(value) if not name.startswith("_")}
        assert shown <= names
        assert all(hasattr(value, name) for name in shown)


def test_no_place_is_empty():
    assert [
        path
        for path, shown in SHOWN.items()
        if not (SECTIONS[path] or getattr(shown, "value", None))
    ] == []


@pytest.mark.parametrize("page", sorted({*PAGES} - {"distributed", "numpy"}))
def test_every_example_runs_as_it_is_pasted(page):
    """In a fresh shell: nothing that a module or an earlier example has is there."""
    told, flags = io.StringIO(), doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    runner = doctest.DocTestRunner(optionflags=flags)
    for path in PAGES[page]:
        for shown in (SHOWN[path], *SHOWN[path].members.values()):
            text = shown.docstring.value
            parsed = doctest.DocTestParser().get_doctest(text, {}, path, None, None)
            with xdev.use_device("cpu"):
                runner.run(parsed, out=told.write)

    assert not runner.failures, told.getvalue()


def test_every_array_function_says_what_it_takes_gives_and_raises():
    """But for triangles, which refuse no more than all functions do."""
    topics = [key.removeprefix("facade.") for key in reference.TOPICS if "." in key]
    missing = {
        f"{path}: {section}"
        for key in (*topics, "linalg", "fft")
        for path, value in PAGES[key].items()
        if callable(value) and inspect.signature(value).parameters
        for section in {"parameters", "returns", "raises", "examples"} - SECTIONS[path]
    }

    assert missing == {"xdev.tril: raises", "xdev.triu: raises"}


def test_every_public_callable_tells_what_it_takes_and_shows_how():
    """But NumPy's data types, which are NumPy's."""
    telling = re.compile(r"^(Parameters|Attributes)\n-", re.MULTILINE)
    lacking = []
    for room in ("", *(f".{name}" for name in ROOMS if name != "numpy")):
        module = importlib.import_module(f"xdev{room}")
        for name, value in ((name, getattr(module, name)) for name in module.__all__):
            if not callable(value) or value.__module__ == "numpy":
                continue
            doc = f"{inspect.getdoc(value)}\n{inspect.getdoc(type(value).__call__)}"
            error = inspect.isclass(value) and issubclass(value, Exception)
            takes = not error and inspect.signature(value).parameters
            if ">>> " not in doc or (takes and not telling.search(doc)):
                lacking.append(f"xdev{room}.{name}")

    assert lacking == []
