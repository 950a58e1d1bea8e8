"""Functions that hand arrays on leave out what is the library's default too."""

import functools

import pytest

from xdev.facade.handing import ARRAYS

from .recorded_calls import (
    OWN,
    STANDS_FOR_THE_FUNCTION,
    Thing,
    by_name,
    given,
    own,
    parameters,
    plain,
    quick,
    served,
)


@pytest.fixture
def recorder(monkeypatch):
    return served(monkeypatch)


def with_defaults(defaults, places):
    """Return a function that returns all its arguments, those by name at the end."""
    named = [f"{key}=defaults[{key!r}]" for key in defaults]
    head, first = ", ".join([places, *named]), places.replace("=None", "")
    made = {"defaults": defaults}
    text = f"def theirs({head}): return [{', '.join([first, *defaults])}]"
    exec(text, made)  # noqa: S102 - as a recorder has it
    return made["theirs"]


def trying(function):
    def again(*args, **options):
        return function(*args, **options)

    again.tried = function
    return again


@pytest.mark.parametrize("places", ["*args", "a=None, b=None, c=None"])
@pytest.mark.parametrize("name", [name for name in ARRAYS if parameters(name)[1]])
def test_defaults_of_the_library(recorder, name, places):
    python, args, known = plain(name), given(name), own(name).__kwdefaults__
    equal = {None: 0, False: 0, True: 1, -1: -1.0}  # or near it
    for defaults in (
        known,
        dict.fromkeys(known, 7),
        known | dict.fromkeys([*known][:1], 7),
        {key: equal.get(value, 7) for key, value in known.items()},
    ):
        theirs = with_defaults(defaults, places)
        for each in (theirs, functools.partial(theirs), trying(theirs)):
            recorder.functions[name] = each
            _, function = quick(recorder, name)
            for options in by_name(name):
                if options.keys() <= known.keys() - OWN:
                    found, wanted = (f(*args, **options) for f in (function, python))
                    assert list(map(id, found)) == list(map(id, wanted)), options


@pytest.mark.skipif(not STANDS_FOR_THE_FUNCTION, reason="needs Python 3.12")
def test_what_is_the_default_there_too_is_left_out(recorder):
    theirs = with_defaults({"axis": None, "keepdims": 0}, "x")
    recorder.functions["argmax"] = theirs
    _, function = quick(recorder, "argmax")
    theirs.__defaults__ = "one", "other"  # what a call that gives none would see
    x = Thing()

    assert function(x) == [x, "one", False], "0 is not the same default"
    assert function(x, keepdims=True) == [x, None, True]


def test_none_may_stand_for_a_default(recorder):
    theirs = with_defaults({"n": None, "axis": -1, "norm": None}, "x")
    recorder.functions["fft.fft"] = theirs
    _, function = quick(recorder, "fft.fft")
    python, x = plain("fft.fft"), Thing()

    norm = None if STANDS_FOR_THE_FUNCTION else "backward"
    assert function(x) == [x, None, -1, norm]
    for options in by_name("fft.fft"):
        if options and options.keys() <= {"n", "axis", "norm"}:
            assert function(x, **options) == python(x, **options)
