"""The facade's names, signatures and docstrings are the standard's."""

import doctest
import inspect
import pickle
import re
from pathlib import Path

import array_api_strict
import numpy as np
import pytest

import xdev
from xdev import facade
from xdev.ufunc import Ufunc

STRICT = {
    name: value
    for name, value in vars(array_api_strict).items()
    if inspect.isfunction(value) and name in array_api_strict.__all__
} | {
    f"{extension}.{name}": getattr(getattr(array_api_strict, extension), name)
    for extension in ("linalg", "fft")
    for name in getattr(array_api_strict, extension).__all__
    if inspect.isfunction(getattr(getattr(array_api_strict, extension), name))
}
NOT_STANDARD = {
    "get_array_api_strict_flags",
    "reset_array_api_strict_flags",
    "set_array_api_strict_flags",
}
NEWER = {  # 2025.12's
    "broadcast_shapes": "(*shapes)",
    "isin": "(x1, x2, /, *more, invert=False)",
    "linalg.eig": "(x, /)",
    "linalg.eigvals": "(x, /)",
}
TYPED = Path(__file__).parents[1] / "typing" / "facade_types.py"
ELEMENTWISE = facade.elementwise.__all__
UFUNCS = sorted(set(ELEMENTWISE) - {"clip"})


def lookup(path):
    found = xdev
    for name in path.split("."):
        found = getattr(found, name)
    return found


def own_functions():
    yield from (
        (name, value)
        for name in facade.__all__
        if inspect.isfunction(value := getattr(xdev, name)) or isinstance(value, Ufunc)
    )
    for extension in ("linalg", "fft"):
        module = getattr(xdev, extension)
        yield from ((f"{extension}.{n}", getattr(module, n)) for n in module.__all__)


FUNCTIONS = dict(own_functions())


@pytest.mark.parametrize("path", sorted(set(STRICT) - NOT_STANDARD))
def test_signature_is_the_standards(path):
    wanted = inspect.signature(STRICT[path]).parameters.values()
    given = list(inspect.signature(lookup(path)).parameters.values())

    given = [one for one in given if one.kind is not one.VAR_KEYWORD]  # for the text
    if path in UFUNCS:
        while given[-1].name != "out":
            assert given.pop().kind is inspect.Parameter.KEYWORD_ONLY
    if path in ELEMENTWISE:
        assert given.pop().name == "out"
    if any(one.kind is one.KEYWORD_ONLY for one in given) and path != "meshgrid":
        given = [one for one in given if one.name != "more"]  # for the error's text
    given = [one for one in given if one.name != "chunks"]  # for Dask's collections
    for one, other in zip(given, wanted, strict=True):
        # By place may go, besides, what does so in NumPy: test_by_place.
        assert one.kind is other.kind or (
            one.kind is one.POSITIONAL_OR_KEYWORD and other.kind is other.KEYWORD_ONLY
        )
        if one.kind is not one.POSITIONAL_ONLY:
            assert one.name == other.name
        # The reference marks "not given" in its own way where None means more.
        marked = type(other.default).__name__ == "Undef"
        assert one.default == (None if marked else other.default)


@pytest.mark.parametrize("path", NEWER)
def test_signature_of_a_newer_name_is_the_standards(path):
    signature = inspect.signature(lookup(path))
    bare = [
        each.replace(annotation=each.empty) for each in signature.parameters.values()
    ]
    assert str(inspect.Signature(bare)) == NEWER[path]


def test_every_name_of_the_standard_is_there():
    assert set(FUNCTIONS) >= (set(STRICT) - NOT_STANDARD) | set(NEWER)
    assert xdev.__array_api_version__ == "2025.12"
    for name in ("e", "inf", "nan", "newaxis", "pi", "bool", "complex128", "uint8"):
        assert name in facade.__all__


def test_names_written_out_are_those_of_the_topics():
    rooms = [value for value in vars(facade).values() if inspect.ismodule(value)]
    topics = [name for room in rooms for name in getattr(room, "__all__", ())]
    constants = [x for x in facade.__all__ if getattr(np, x, 0) is getattr(facade, x)]
    assert sorted(topics + constants) == sorted(facade.__all__)


@pytest.mark.parametrize("path", sorted(FUNCTIONS))
def test_functions_say_what_they_are(path):
    function = FUNCTIONS[path]

    assert inspect.isfunction(function) or path in UFUNCS
    assert function.__name__ == function.__qualname__ == path.rpartition(".")[2]
    if path not in UFUNCS:
        assert all(x.annotation is not x.empty for x in parameters(function))


def parameters(function):
    return inspect.signature(function).parameters.values()


def test_types_are_checked_by_mypy_for_every_name():
    checked = re.findall(r"\bxp\.([\w.]+)", TYPED.read_text())
    assert set(FUNCTIONS) - {"namespace"} <= set(checked)


@pytest.mark.parametrize("path", UFUNCS)
def test_elementwise_functions_are_ufuncs(path):
    function = FUNCTIONS[path]

    assert type(function) is type(xdev.vectorize(lambda x: x))
    assert function.__name__ == path
    assert pickle.loads(pickle.dumps(function)) is function  # noqa: S301 - ours
    assert inspect.signature(function).parameters["out"].default is None


@pytest.mark.parametrize("path", sorted(FUNCTIONS))
def test_docstring_has_its_sections_and_examples_that_run(path):
    function = FUNCTIONS[path]
    text = inspect.getdoc(function)

    assert "Returns\n-------" in text
    if inspect.signature(function).parameters:
        assert "Parameters\n----------" in text
    examples = doctest.DocTestParser().get_doctest(text, {}, path, None, None)
    assert examples.examples
    with xdev.use_device("cpu"):
        result = doctest.DocTestRunner(verbose=False).run(examples)
    assert result.failed == 0


@pytest.mark.parametrize("module", [xdev, xdev.linalg, xdev.fft])
def test_tab_shows_the_public_names(module):
    shown = dir(module)

    besides = ["numpy"] if module is xdev else []  # which no star brings
    assert shown == sorted([*module.__all__, *besides])
    assert all(hasattr(module, name) for name in shown)
