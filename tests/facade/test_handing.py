"""Functions that hand arrays on, as machine code, against their own Python code."""

import ctypes
import gc
import itertools
import sys

import numpy as np
import pytest

from xdev import _optional
from xdev.device import registry
from xdev.facade import libraries
from xdev.facade.handing import ARRAYS
from xdev.facade.quick import Quickening

from .recorded_calls import (
    OWN,
    STANDS_FOR_THE_FUNCTION,
    Kin,
    Thing,
    apart,
    by_name,
    called,
    given,
    inside,
    outcome,
    own,
    parameters,
    plain,
    quick,
    served,
)


@pytest.fixture
def recorder(monkeypatch):
    return served(monkeypatch)


@pytest.mark.parametrize("name", ARRAYS)
def test_what_the_library_is_given(recorder, name):
    _, function = quick(recorder, name)
    python, args, (places, known) = plain(name), given(name), parameters(name)
    assert not own(name).__defaults__, "or arguments by place may be left out"
    assert set(python.__kwdefaults__ or ()) == set(known)
    calls = [
        *((args, options) for options in by_name(name)),
        *((args[:k], {}) for k in range(len(args) + 1)),
        *(((*args, 1), options) for options in by_name(name)),
        ((*args, *args), {}),
        *((args[1:], {key: args[0]}) for key in places[:1]),
        *((args[:-1], {key: args[-1]}) for key in places[-1:]),
    ]
    for one, options in calls:
        expected = outcome(recorder, python, one, options)
        assert outcome(recorder, function, one, options) == expected, (one, options)


@pytest.mark.parametrize("name", ARRAYS)
def test_arguments_of_all_kinds(recorder, name):
    _, function = quick(recorder, name)
    python, (places, known) = plain(name), parameters(name)
    x = np.arange(4.0).reshape(2, 2)
    kinds = [Thing(), Kin(), x, x[0], np.float64(2), 2, None, "text", (1, 0), Thing]
    for args in itertools.product(kinds, repeat=len(places) or 2):
        for options in ({}, {"axis": 0} if "axis" in known else {}):
            expected = outcome(recorder, python, args, options)
            assert outcome(recorder, function, args, options) == expected, args


@pytest.mark.parametrize("name", ARRAYS)
def test_what_the_library_raises(recorder, name):
    _, function = quick(recorder, name)
    for error in (ValueError("a value"), TypeError("a type"), MemoryError()):
        recorder.error = error
        for call in (plain(name), function):
            with pytest.raises(type(error)) as caught:
                call(*given(name))
            assert caught.value is error


@pytest.mark.parametrize("name", ARRAYS)
def test_which_frames_are_made(recorder, name):
    _, function = quick(recorder, name)
    args, known = given(name), set(parameters(name)[1])
    for count in range(len(known - OWN) + 1):
        for keys in itertools.permutations(known - OWN, count):
            frames = called(function, args, dict.fromkeys(keys, 1))
            assert frames == (not STANDS_FOR_THE_FUNCTION)
    for key in known & OWN:
        assert called(function, args, {key: None}) == 1


@pytest.mark.parametrize("name", [name for name in ARRAYS if not ARRAYS[name]])
def test_sequences_of_arrays(recorder, name):
    _, function = quick(recorder, name)
    python, x, y = plain(name), Thing(), np.ones(2)
    kinds = list, tuple, type("List", (list,), {}), type("Tuple", (tuple,), {})
    for one in [(), (x,), (x, x, x), (y, x), (x, y), (x, Kin()), (y, y), (x, 2), (2,)]:
        for args in (one, *((kind(one),) for kind in kinds)):
            expected = outcome(recorder, python, args, {})
            assert outcome(recorder, function, args, {}) == expected, args
    for many in [x] * 1000, (x,) * 1000:
        assert called(function, (many,), {}) == (not STANDS_FOR_THE_FUNCTION)


@pytest.mark.parametrize("name", [name for name in ARRAYS if ARRAYS[name] < 0])
def test_any_number_of_arrays(recorder, name):
    _, function = quick(recorder, name)
    python, x, y = plain(name), Thing(), np.ones(2)
    for count in range(12):
        for last in ((), (y,), (Kin(),), (2,)):
            args = (x,) * count + last
            expected = outcome(recorder, python, args, {})
            assert outcome(recorder, function, args, {}) == expected, args
    for count in 1, 3, 8:
        assert called(function, (x,) * count, {}) == (not STANDS_FOR_THE_FUNCTION)


def test_names_that_are_given_twice_or_not_at_all(recorder):
    _, function = quick(recorder, "argmax")
    python, x = plain("argmax"), Thing()
    take = ctypes.py_object
    kind = ctypes.PYFUNCTYPE(take, take, ctypes.c_void_p, ctypes.c_size_t, take)
    call = kind(("PyObject_Vectorcall", ctypes.pythonapi))

    def direct(function, *names):
        values = (take * (1 + len(names)))(x, *range(len(names)))
        return call(function, ctypes.addressof(values), 1, names)

    for names in [(), ("axis",), ("axis", "axis"), ("keepdims", "axis", "keepdims")]:
        expected = outcome(recorder, direct, (python, *names), {})
        assert outcome(recorder, direct, (function, *names), {}) == expected


def test_functions_of_the_library_that_are_replaced(recorder):
    state, total, flip = quick(recorder, "sum", "flip")
    x, theirs = Thing(), dict(recorder.functions)
    assert total(x) == (recorder, "sum")
    state.serve(Thing, theirs | {"sum": lambda *_, **__: "another"})
    assert flip(x) == (recorder, "flip")
    if STANDS_FOR_THE_FUNCTION:
        assert total(x) == "another"


def test_what_failed_is_done_again_though_another_was_put_in_its_place(recorder):
    def again(*_, **__):
        return "again"

    def tried(*_, **__):
        state.serve(Thing, others)
        raise RuntimeError

    again.tried, recorder.functions["sum"] = tried, again
    state, total = quick(recorder, "sum")
    others = dict(recorder.functions) | {"sum": lambda *_, **__: "another"}
    assert total(Thing()) == "again"


def test_when_functions_are_called_otherwise(recorder):
    functions = {name: plain(name) for name in ARRAYS}
    x, steps = Thing(), ("join", "serve", "load", "find")
    for order, count in itertools.product(itertools.permutations(steps), range(5)):
        recorder.functions.clear()
        state, one, other = Quickening(), plain("linalg.inv"), plain("linalg.det")
        room = functions | {"linalg.inv": one, "linalg.det": other}
        for step in order[:count]:
            if step == "join":
                state.join_handing(inside("linalg", room), "linalg")
            elif step == "serve":
                state.serve(Thing, recorder.functions)
            elif step == "load":
                state.quicken()
            else:
                assert one(x) == (recorder, "linalg.inv")
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


def test_ten_thousand_calls_keep_nothing(recorder, monkeypatch):
    result, value, x = object(), object(), Thing()
    kept = [result, value, x, odd := apart("axis")]

    def total(x, **options):
        if options["axis"] is x:
            raise ValueError
        return result

    monkeypatch.setitem(recorder.functions, "sum", total)
    _, function = quick(recorder, "sum")

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
