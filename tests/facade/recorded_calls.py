"""A library of another kind of arrays, whose functions record what they are given."""

import operator
import sys
import types

import numpy as np

import xdev
from xdev.facade import libraries
from xdev.facade.functions import Functions
from xdev.facade.handing import ARRAYS
from xdev.facade.quick import Quickening

STANDS_FOR_THE_FUNCTION = sys.version_info >= (3, 12)
#: Arguments that send a call to Python, which looks at more than the first arrays then.
OWN = {"append", "dtype", "prepend", "sorter"}


class Thing:
    """An array of another library."""


class Kin(Thing):
    """One of a derived class: not what is served."""


class Library:
    """A library of things: its functions note what they are given."""

    several, numpy_dtypes = False, True

    def __init__(self):
        self.functions = Functions(self.find)
        self.calls = []
        self.error, self.translated = None, object()

    def find(self, name):
        def function(*args, **options):
            given = [*args, *options, *options.values()]
            self.calls.append((name, len(args), [*options], list(map(id, given))))
            if self.error is not None:
                raise self.error
            return self, name

        return function

    def bound(self, name, _):
        return self.functions[name]

    def device(self, _):
        return None

    def dtype(self, _):
        return self.translated

    def operand(self, value, _):
        return value


def served(monkeypatch):
    """Return a library of things, which are served like arrays."""
    made = Library()
    monkeypatch.setitem(libraries.known, Thing, made)
    monkeypatch.setitem(libraries.direct, Thing, made.functions)
    return made


def own(name):
    return operator.attrgetter(name)(xdev)


def parameters(name):
    """Return the names of what is given by place, and of what is by name."""
    code = own(name).__code__
    names, count = code.co_varnames, code.co_argcount
    return names[:count], names[count : count + code.co_kwonlyargcount]


def plain(name):
    """Return a function of the same Python code, which is no machine code."""
    made = types.FunctionType(own(name).__code__, own(name).__globals__)
    made.__kwdefaults__ = own(name).__kwdefaults__
    return made


def inside(room, functions):
    """Return a room's functions by their names there."""
    parts = [(name.rpartition("."), each) for name, each in functions.items()]
    return {name: each for (place, _, name), each in parts if place == room}


def quick(library, *names):
    """Return such functions, called as machine code where Python can."""
    state, made = Quickening(), {name: plain(name) for name in ARRAYS}
    for room in ("", "fft", "linalg"):
        state.join_handing(inside(room, made), room)
    state.quicken()
    for name in names:
        assert callable(library.functions[name])
    state.serve(Thing, library.functions)
    return state, *(made[name] for name in names)


def outcome(library, function, args, options):
    """Return what a call returns or raises, and what it calls of the library."""
    library.calls.clear()
    try:
        with np.errstate(all="ignore"):
            found = function(*args, **options)
    except Exception as error:  # noqa: BLE001 - it is what is compared
        return type(error), str(error), library.calls[:]
    return type(found), repr(found), library.calls[:]


def called(function, args, options):
    """Return how often a function's own frame is made."""
    frames = 0

    def note(frame, event, _):
        nonlocal frames
        frames += event == "call" and frame.f_code is function.__code__

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        function(*args, **options)
    finally:
        sys.setprofile(before)
    return frames


def given(name):
    """Return arguments by place, as many as there must be: arrays, then numbers."""
    places, _ = parameters(name)
    if not ARRAYS[name]:
        return ([Thing(), Thing()],)
    if ARRAYS[name] < 0:
        return Thing(), Thing()
    return tuple(Thing() if k < ARRAYS[name] else k for k in range(len(places)))


def apart(text):
    """Return the same text as another object."""
    return "".join(list(text))


def by_name(name):
    """Return what may be given by name, and what may not."""
    places, known = parameters(name)
    value = Thing()
    return [
        *({key: value} for key in known),
        *({key: None} for key in known),
        *({key: own(name).__kwdefaults__[key]} for key in known),
        *({apart(key): value} for key in known),
        dict.fromkeys(known, value),
        dict.fromkeys(reversed(known), 1),
        dict.fromkeys([*known, "other"], 1),
        *({key: 1} for key in (*places, "other", "dtype", "out", "")),
    ]
