"""The site's API reference has every public name, with what it says of itself."""

import doctest
import importlib
import inspect
import io
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import xdev
from xdev import errors, facade

DOCS = Path(__file__).parent.parent / "docs"
sys.path.insert(0, str(DOCS))

import reference  # noqa: E402 - the site's hook, which is in no package

pytest.importorskip("distributed")  # whose names are there, too
TEXTS = reference.texts()
NAMES = [name for page in reference.pages().values() for name in page.names]
#: Rooms that are reached by their names: ``xdev.linalg.svd``.
ROOMS = (
    *("atomic", "distributed", "fft", "linalg", "memory", "memory.bridges", "numpy"),
    *("random", "testing", "timing"),
)
#: What needs hardware, the debug mode, other processes or another library's process.
WITHOUT_EXAMPLE = {
    *("CaptureError", "MemoryCorruptionError"),
    *("install", "install_default", "install_operators"),
    *("is_pinned_address", "left_alone", "local_cluster", "memory_status"),
    *("pinned_array", "uninstall", "WorkerPlugin"),
}


def test_every_public_name_has_a_place():
    placed, paths = {id(name.value) for name in NAMES}, {name.path for name in NAMES}
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
    assert {name for name, room in topics if hasattr(room, "__all__")} <= set(TEXTS)


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
    documented = [name for name in NAMES if not name.path.startswith("xdev.numpy.")]
    parts = {
        part.partition("`")[0]: part.partition("}\n")[2].strip()
        for text in TEXTS.values()
        for part in text.split("\n## `")[1:]
    }

    assert {name.path for name in documented} == set(parts)
    assert [path for path, part in parts.items() if not part] == []


def test_a_function_has_its_signature_sections_and_example():
    _, _, text = TEXTS["searching"].partition("## `xdev.isin`")
    text = text.partition("\n## ")[0]

    assert "xdev.isin(x1, x2, /, *, invert=False)" in text
    for part in ("**Parameters**", "- `x1", "**Raises**", "**Example**", ">>> "):
        assert part in text
    assert ":func:" not in text
    assert "``" not in text.replace("```", "")


@pytest.mark.parametrize("page", sorted({*TEXTS} - {"distributed"}))
def test_every_example_runs_as_it_is_pasted(page):
    """In a fresh shell: nothing that a module or an earlier example has is there."""
    told, flags = io.StringIO(), doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    runner = doctest.DocTestRunner(optionflags=flags)
    for text in re.findall(r"```pycon\n(.*?)```", TEXTS[page], re.DOTALL):
        parsed = doctest.DocTestParser().get_doctest(text, {}, page, None, None)
        with xdev.use_device("cpu"):
            runner.run(parsed, out=told.write)

    assert not runner.failures, told.getvalue()


def test_every_array_function_says_what_it_takes_gives_and_raises():
    """But for triangles, which refuse no more than all functions do."""
    pages = [*reference.TOPICS, "linalg", "fft"]
    missing = {
        f"{name.path}: {title}"
        for key in pages
        for name in reference.pages()[key].names
        if callable(name.value) and inspect.signature(name.value).parameters
        for title in ("Parameters", "Returns", "Raises", "Examples")
        if title
        not in dict(
            reference.sections(inspect.getdoc(reference.described_by(name.value)))
        )
    }

    assert missing == {"xdev.tril: Raises", "xdev.triu: Raises"}


def test_every_name_has_an_example():
    pages = reference.pages().items()
    missing = {
        name.last
        for key, page in pages
        for name in page.names
        if key not in {"constants", "numpy"}
        and callable(name.value)
        and ">>>" not in (inspect.getdoc(reference.described_by(name.value)) or "")
    }

    assert missing <= WITHOUT_EXAMPLE


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
