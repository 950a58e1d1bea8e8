"""The site's API reference has every public name, with what it says of itself."""

import importlib
import inspect
import sys
from pathlib import Path

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
#: What needs hardware, other processes or another library's whole process.
WITHOUT_EXAMPLE = {
    *("install", "install_default", "install_operators"),
    *("is_pinned_address", "left_alone", "local_cluster", "memory_status"),
    *("pinned_array", "uninstall", "WorkerPlugin"),
}


def test_every_name_of_the_package_has_a_place():
    placed = {id(name.value) for name in NAMES}
    missing = [
        name
        for name in xdev.__all__
        if not inspect.ismodule(value := getattr(xdev, name))
        and id(value) not in placed
    ]

    assert missing == []


@pytest.mark.parametrize("room", ROOMS)
def test_every_name_of_a_room_has_a_place(room):
    module = importlib.import_module(f"xdev.{room}")
    public = {
        f"xdev.{room}.{name}"
        for name in module.__all__
        if not inspect.ismodule(getattr(module, name))
    }

    assert public - {name.path for name in NAMES} == set()


def test_every_error_and_every_topic_of_the_facade_has_a_place():
    raised = {
        value
        for value in vars(errors).values()
        if inspect.isclass(value) and issubclass(value, errors.XdevError)
    }
    topics = {
        name
        for name, module in vars(facade).items()
        if inspect.ismodule(module) and hasattr(module, "__all__")
    }

    assert raised <= {name.value for name in NAMES if inspect.isclass(name.value)}
    assert topics <= set(TEXTS)


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


def test_the_navigation_has_every_page():
    config = reference.on_config({"nav": [{"API reference": []}]})
    (entry,) = config["nav"]
    paths = [
        each if isinstance(each, str) else next(iter(each.values()))
        for each in entry["API reference"]
    ]

    assert sorted(paths) == sorted(f"api/{key}.md" for key in TEXTS)


def test_every_name_has_an_example():
    pages = reference.pages().items()
    missing = {
        name.last
        for key, page in pages
        for name in page.names
        if key not in {"constants", "errors", "numpy"}
        and callable(name.value)
        and not name.last.endswith("Error")
        and ">>>" not in (inspect.getdoc(reference.described_by(name.value)) or "")
    }

    assert missing <= WITHOUT_EXAMPLE
