"""Functions that hand arrays on, as machine code, against their own Python code."""

import ctypes
import gc
import itertools
import operator
import sys
import types

import numpy as np
import pytest

import xdev
from xdev import _optional
from xdev.device import registry
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


@pytest.fixture
def library(monkeypatch):
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


@pytest.mark.parametrize("name", ARRAYS)
def test_what_the_library_is_given(library, name):
    _, function = quick(library, name)
    python, args, (places, known) = plain(name), given(name), parameters(name)
    assert not own(name).__defaults__, "or arguments by place may be left out"
    assert set(python.__kwdefaults__ or ()) == set(known)
    calls = [
        *((args, options) for options in by_name(name)),
        *((args[:k], {}) for k in range(len(args) + 1)),
        *(((*args, 1), options) for options in by_name(name)),
        ((*args, *args), {}),
        (args[1:], {places[0]: args[0]}),
        (args[:-1], {places[-1]: args[-1]}),
    ]
    for one, options in calls:
        expected = outcome(library, python, one, options)
        assert outcome(library, function, one, options) == expected, (one, options)


@pytest.mark.parametrize("name", ARRAYS)
def test_arguments_of_all_kinds(library, name):
    _, function = quick(library, name)
    python, (places, known) = plain(name), parameters(name)
    x = np.arange(4.0).reshape(2, 2)
    kinds = [Thing(), Kin(), x, x[0], np.float64(2), 2, None, "text", (1, 0), Thing]
    for args in itertools.product(kinds, repeat=len(places)):
        for options in ({}, {"axis": 0} if "axis" in known else {}):
            expected = outcome(library, python, args, options)
            assert outcome(library, function, args, options) == expected, args


@pytest.mark.parametrize("name", ARRAYS)
def test_what_the_library_raises(library, name):
    _, function = quick(library, name)
    for error in (ValueError("a value"), TypeError("a type"), MemoryError()):
        library.error = error
        for call in (plain(name), function):
            with pytest.raises(type(error)) as caught:
                call(*given(name))
            assert caught.value is error


@pytest.mark.parametrize("name", ARRAYS)
def test_which_frames_are_made(library, name):
    _, function = quick(library, name)
    args, known = given(name), set(parameters(name)[1])
    for count in range(len(known - OWN) + 1):
        for keys in itertools.permutations(known - OWN, count):
            frames = called(function, args, dict.fromkeys(keys, 1))
            assert frames == (not STANDS_FOR_THE_FUNCTION)
    for key in known & OWN:
        assert called(function, args, {key: None}) == 1


@pytest.mark.parametrize("name", [name for name in ARRAYS if not ARRAYS[name]])
def test_sequences_of_arrays(library, name):
    _, function = quick(library, name)
    python, x, y = plain(name), Thing(), np.ones(2)
    kinds = list, tuple, type("List", (list,), {}), type("Tuple", (tuple,), {})
    for one in [(), (x,), (x, x, x), (y, x), (x, y), (x, Kin()), (y, y), (x, 2), (2,)]:
        for args in (one, *((kind(one),) for kind in kinds)):
            expected = outcome(library, python, args, {})
            assert outcome(library, function, args, {}) == expected, args
    for many in [x] * 1000, (x,) * 1000:
        assert called(function, (many,), {}) == (not STANDS_FOR_THE_FUNCTION)


def test_names_that_are_given_twice_or_not_at_all(library):
    _, function = quick(library, "argmax")
    python, x = plain("argmax"), Thing()
    take = ctypes.py_object
    kind = ctypes.PYFUNCTYPE(take, take, ctypes.c_void_p, ctypes.c_size_t, take)
    call = kind(("PyObject_Vectorcall", ctypes.pythonapi))

    def direct(function, *names):
        values = (take * (1 + len(names)))(x, *range(len(names)))
        return call(function, ctypes.addressof(values), 1, names)

    for names in [(), ("axis",), ("axis", "axis"), ("keepdims", "axis", "keepdims")]:
        expected = outcome(library, direct, (python, *names), {})
        assert outcome(library, direct, (function, *names), {}) == expected


def test_functions_of_the_library_that_are_replaced(library):
    state, total, flip = quick(library, "sum", "flip")
    x, theirs = Thing(), dict(library.functions)
    assert total(x) == (library, "sum")
    state.serve(Thing, theirs | {"sum": lambda *_, **__: "another"})
    assert flip(x) == (library, "flip")
    if STANDS_FOR_THE_FUNCTION:
        assert total(x) == "another"


def test_when_functions_are_called_otherwise(library):
    functions = {name: plain(name) for name in ARRAYS}
    x, steps = Thing(), ("join", "serve", "load", "find")
    for order, count in itertools.product(itertools.permutations(steps), range(5)):
        library.functions.clear()
        state, one, other = Quickening(), plain("linalg.inv"), plain("linalg.det")
        room = functions | {"linalg.inv": one, "linalg.det": other}
        for step in order[:count]:
            if step == "join":
                state.join_handing(inside("linalg", room), "linalg")
            elif step == "serve":
                state.serve(Thing, library.functions)
            elif step == "load":
                state.quicken()
            else:
                assert one(x) == (library, "linalg.inv")
                state.hand_on()
        whole = STANDS_FOR_THE_FUNCTION and count == len(steps)
        assert called(one, (x,), {}) == (not whole), order
        assert called(other, (x,), {}) == 1


@pytest.mark.skipif(not _optional.installed("cupy"), reason="needs CuPy")
def test_cupys_arrays_are_handed_on_once_a_function_was_called_with_them(monkeypatch):
    from xdev.facade import cuda

    cupy, state, marked = _optional.cupy(), Quickening(), []
    monkeypatch.setattr(cuda, "QUICKENING", state)
    monkeypatch.setattr(cuda, "mark_uses", marked.append)
    monkeypatch.setattr(cuda.live_streams, "several", False)
    monkeypatch.setattr(cuda.live_streams, "when_several", [])
    monkeypatch.setattr(type(registry.backend("cuda")), "count", lambda _: 1)
    library = cuda.CuPyLibrary()
    monkeypatch.setitem(libraries.direct, cupy.ndarray, library.functions)
    memory = cupy.cuda.UnownedMemory(1 << 20, 1 << 10, None, 0)
    x = cupy.ndarray((2, 3), "f4", cupy.cuda.MemoryPointer(memory, 0))
    functions = {name: plain(name) for name in ARRAYS}
    state.join_handing(inside("", functions))
    state.quicken()
    state.serve(cupy.ndarray, library.functions)
    transpose, squeeze = functions["permute_dims"], functions["squeeze"]

    for one, args in (transpose, (x, (1, 0))), (functions["matrix_transpose"], (x,)):
        assert called(one, args, {}) == 1
        assert called(one, args, {}) == (not STANDS_FOR_THE_FUNCTION)
    assert transpose(x, (1, 0)).shape == transpose(x, axes=(1, 0)).shape == (3, 2)
    library._mark_uses()
    state.serve(cupy.ndarray, library.functions)
    assert transpose(x, (1, 0)).shape == (3, 2)
    assert [given[0] is x for given in marked] == [True]
    assert called(squeeze, (x[:1], 0), {}) == 1


def test_ten_thousand_calls_keep_nothing(library, monkeypatch):
    result, value, x = object(), object(), Thing()
    kept = [result, value, x, odd := apart("axis")]

    def total(x, **options):
        if options["axis"] is x:
            raise ValueError
        return result

    monkeypatch.setitem(library.functions, "sum", total)
    _, function = quick(library, "sum")

    def counts():
        gc.collect()
        return [sys.getrefcount(each) for each in [*kept, function, total]]

    def calls():
        for _ in range(10_000):
            function(x)
            function(x, axis=value)
            function(x, keepdims=value, axis=value)
            function(x, **{odd: value})
            function(x, dtype=value)
        for wrong in ({"other": 1}, {"axis": x}, {"axis": value, "other": x}):
            for _ in range(1_000):
                with pytest.raises((TypeError, ValueError)):
                    function(x, **wrong)

    calls()
    before = counts()
    calls()
    for one, another in zip(counts(), before, strict=True):
        assert abs(one - another) < 50
