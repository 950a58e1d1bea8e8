"""``__array_ufunc__`` of operands of a ufunc's methods: called as NumPy calls it."""

import numpy as np
import pytest
from running import add, turned

import xdev

negative = xdev.vectorize(lambda x: -x)


class Recording:
    """An operand that tells what it was called with."""

    def __array_ufunc__(self, ufunc, method, *inputs, **keywords):
        return method, inputs, keywords


class Later(Recording):
    """One that leaves it to others."""

    def __array_ufunc__(self, ufunc, method, *inputs, **keywords):
        return NotImplemented


class Deeper(Recording):
    """One that goes before its base class."""

    def __array_ufunc__(self, ufunc, method, *inputs, **keywords):
        return "deeper", method


class Telling(np.ndarray):
    def __array_ufunc__(self, ufunc, method, *inputs, **keywords):
        return method, [type(x) for x in inputs], keywords


A, O = Recording(), np.zeros(3)
S = np.arange(3.0).view(Telling)
CALLS = [
    lambda f: f.reduce(A),
    lambda f: f.reduce(A, (0, 1), float, O),
    lambda f: f.reduce(A, 1, out=None, keepdims=True, initial=3, where=True),
    lambda f: f.reduce(O, out=A),
    lambda f: f.accumulate(A, 0, None, O),
    lambda f: f.accumulate(A, dtype="f", out=(O,)),
    lambda f: f.reduceat(A, [0, 1], 1, out=O),
    lambda f: f.reduceat(O, A),
    lambda f: f.at(O, [0], A),
    lambda f: f.at(O, A, 1.0),
    lambda f: f.outer(O, A, out=O, where=True, dtype=float),
    lambda f: f.outer(O, O, out=A),
    lambda f: f.reduce(S),
    lambda f: f.accumulate(S, out=(O,)),
    lambda f: f.reduceat(S, [0, 1]),
    lambda f: f.at(S, [0], 1.0),
    lambda f: f.outer(2.0, S),
]


@pytest.mark.parametrize("call", CALLS)
def test_operands_are_called_as_numpy_calls_them(call):
    assert call(add) == call(np.add)
    assert negative.at(A, [0]) == np.negative.at(A, [0])


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("f", [add, xdev.add])
def test_elements_that_none_writes_are_theirs_to_tell(f):
    assert f(A, O, where=O > 0)[0] == "__call__"


def test_who_is_asked_first():
    assert add.outer(Later(), A)[0] == "outer"
    assert add.outer(A, Deeper()) == np.add.outer(A, Deeper()) == ("deeper", "outer")
    with pytest.raises(
        TypeError, match=r"add\.outer: no operand of Later, ndarray.*pass the arrays"
    ):
        add.outer(Later(), O)
    for f in (wave, np.hypot):
        assert f(A, Deeper()) == ("deeper", "__call__")
        assert f(Later(), A)[0] == "__call__"
        with pytest.raises(TypeError, match="Later"):
            f(Later(), 1.0)
        assert f(O, A, sig="dd->d")[2] == {"signature": "dd->d"}


@xdev.vectorize
def wave(x, y):
    return 2 * x + y


class Seen:
    """An operand that keeps what it is handed, and computes of what it holds."""

    def __init__(self, array):
        self.array = array

    def __array_ufunc__(self, ufunc, method, *inputs, **keywords):
        plain = [x.array if isinstance(x, Seen) else x for x in inputs]
        keywords |= {
            name: tuple(x.array if isinstance(x, Seen) else x for x in outs)
            for name, outs in keywords.items()
            if name == "out"
        }
        return ufunc, method, getattr(ufunc, method)(*plain, **keywords)


class SeenSubclass(np.ndarray):
    """A subclass, as NumPy's documents write one."""

    def __array_ufunc__(self, ufunc, method, *inputs, **keywords):
        plain = [np.asarray(x) for x in inputs]
        return ufunc, method, super().__array_ufunc__(ufunc, method, *plain, **keywords)


KINDS = [Seen, lambda x: x.view(SeenSubclass)]


@pytest.mark.parametrize("kind", KINDS)
def test_operands_are_handed_the_ufunc_that_was_called(kind):
    x = np.arange(3)
    for call, expected in (
        (lambda: wave(kind(x), 1), 2 * x + 1),
        (lambda: wave(x, kind(x)), 3 * x),
        (lambda: wave(kind(x), x, where=x > 0, out=np.zeros(3)), 3 * x),
        (lambda: wave.reduce(kind(x)), 4),
        (lambda: wave.outer(kind(x), x), np.add.outer(2 * x, x)),
        (lambda: turned(kind(x)), x[::-1]),
    ):
        ufunc, method, found = call()
        assert ufunc is wave or ufunc is turned
        assert method in {"__call__", "reduce", "outer"}
        np.testing.assert_array_equal(found, expected)


def test_outputs_and_masks_decide_too():
    x, out = np.arange(3.0), Seen(np.zeros(3))
    ufunc, _, found = wave(x, x, out=out)
    assert ufunc is wave
    assert found is out.array
    assert turned(x, out=out)[0] is turned
    assert wave(x, x, where=A, out=None)[0] == "__call__"


class Refusing:
    __array_ufunc__ = None

    def __array__(self, dtype=None, copy=None):
        raise AssertionError


@pytest.mark.parametrize("call", [lambda x: wave(x, 1.0), turned, wave.reduce])
def test_none_in_its_place_refuses(call):
    with pytest.raises(TypeError, match=r"no operand of .*Refusing"):
        call(Refusing())


@pytest.mark.parametrize("name", ["add", "sub", "divmod", "maximum"])
def test_names_that_libraries_know_are_not_handed_on(name):
    def function(x, y):
        return x + 10 * y

    function.__name__ = name
    ufunc, _, found = xdev.vectorize(function)(Seen(np.ones(2)), 1)
    assert ufunc.__name__ == f"xdev:{name}"
    assert found.tolist() == [11, 11]


def test_xarray_keeps_its_names_and_computes_no_collection_of_dask():
    xarray = pytest.importorskip("xarray")
    x = xarray.DataArray(np.arange(3.0), dims="time")
    assert wave(x, 1.0).equals(2 * x + 1)
    da = pytest.importorskip("dask.array")
    x = xarray.DataArray(da.arange(6.0, chunks=2), dims="time")
    made = wave(x, 1.0)
    assert made.chunks == ((2, 2, 2),)
    assert made.equals(2 * x + 1)


def test_pandas_keeps_its_index_and_runs_no_function_of_its_own():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1.0, 2.0], "b": [0.5, 1.5]}, index=[3, 4])
    assert wave(frame, 1).equals(2 * frame + 1)
    ten = xdev.vectorize(lambda x, y: x + 10 * y)
    ten.__name__ = "add"
    assert ten(frame, 1).equals(frame + 10)


class Subclass(np.ndarray):
    """One that leaves all to NumPy."""


@pytest.mark.parametrize("size", [10, 100_000])
def test_plain_subclasses_go_on_as_numpy_has_them(size):
    masked = np.ma.masked_array([1.0, 2.0], mask=[False, True])
    for call in (add, add.outer):
        assert isinstance(call(masked, np.ones(2)), np.ma.MaskedArray)
    x = np.ones(size)
    one, out = x.view(Subclass), np.zeros(size).view(Subclass)
    assert add.reduce(one) == size
    for _ in range(3):
        assert type(add(one, x)) is type(add(x, one)) is type(add(one, one)) is Subclass
        assert add(x, x, out=out) is out
        assert (out == 2).all()
        assert type(add(one, x, out=np.zeros(size))) is np.ndarray
