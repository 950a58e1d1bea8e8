"""``__array_ufunc__`` of operands of a ufunc's methods: called as NumPy calls it."""

import numpy as np
import pytest

import xdev


@xdev.vectorize(identity=0)
def add(x, y):
    return x + y


@xdev.vectorize
def below(x, y):
    return x < y


@xdev.vectorize
def negative(x):
    return -x


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
    """A subclass that tells the same."""

    def __array_ufunc__(self, ufunc, method, *inputs, **keywords):
        return method, [type(x) for x in inputs], keywords


class Wrapped:
    """An array with a dtype, as NumPy's documents write one."""

    def __init__(self, array):
        self.array, self.dtype = array, array.dtype

    def __array_ufunc__(self, ufunc, method, *inputs, **keywords):
        assert isinstance(ufunc, np.ufunc) or type(inputs[-1]) is int
        plain = [x.array if isinstance(x, Wrapped) else x for x in inputs]
        return "wrapped", getattr(ufunc, method)(*plain, **keywords)


A, O = Recording(), np.zeros(3)
CALLS = [
    lambda f: f.reduce(A),
    lambda f: f.reduce(A, axis=None),
    lambda f: f.reduce(A, (0, 1), float, O),
    lambda f: f.reduce(A, 1, out=None, keepdims=True, initial=3, where=True),
    lambda f: f.reduce(A, out=(O,)),
    lambda f: f.reduce(O, out=A),
    lambda f: f.accumulate(A),
    lambda f: f.accumulate(A, 0, None, O),
    lambda f: f.accumulate(A, dtype="f", out=(O,)),
    lambda f: f.accumulate(O, out=A),
    lambda f: f.reduceat(A, [0, 1]),
    lambda f: f.reduceat(A, [0, 1], 1, out=O),
    lambda f: f.reduceat(O, A),
    lambda f: f.at(A, [0, 1], 2.0),
    lambda f: f.at(O, [0], A),
    lambda f: f.at(O, A, 1.0),
    lambda f: f.outer(A, O),
    lambda f: f.outer(O, A, out=O, where=True, dtype=float),
    lambda f: f.outer(O, O, out=A),
]
S = np.arange(3.0).view(Telling)
OF_SUBCLASSES = [
    lambda f: f.reduce(S),
    lambda f: f.accumulate(S, out=(O,)),
    lambda f: f.reduceat(S, [0, 1]),
    lambda f: f.at(S, [0], 1.0),
    lambda f: f.at(O, [0], S),
    lambda f: f.outer(S, O),
    lambda f: f.outer(O, S, out=O),
    lambda f: f.outer(2.0, S),
]


@pytest.mark.parametrize("call", [*CALLS, *OF_SUBCLASSES])
def test_operands_are_called_as_numpy_calls_them(call):
    assert call(add) == call(np.add)


def test_of_one_argument():
    assert negative.at(A, [0]) == np.negative.at(A, [0])


def test_who_is_asked_first():
    assert add.outer(Later(), A)[0] == "outer"
    assert add.outer(A, Deeper()) == np.add.outer(A, Deeper()) == ("deeper", "outer")
    with pytest.raises(TypeError, match=r"add\.outer: no operand of Later, ndarray"):
        add.outer(Later(), O)


def test_operands_with_dtypes_get_a_real_ufunc():
    x = np.arange(12, dtype="f").reshape(3, 4)
    y = x.copy()
    for name, rest in (
        ("reduce", ()),
        ("accumulate", (1,)),
        ("reduceat", ([0, 2],)),
        ("outer", (x,)),
    ):
        tag, found = getattr(add, name)(Wrapped(x), *rest)
        assert tag == "wrapped"
        expected = getattr(np.add, name)(x, *rest)
        np.testing.assert_array_equal(found, expected)
        assert found.dtype == expected.dtype
    assert add.at(Wrapped(y), [0, 0], 1) == ("wrapped", None)
    assert add.at(Wrapped(y), [0], Wrapped(x[1])) == ("wrapped", None)
    np.testing.assert_array_equal(y[0], x[0] + 2 + x[1])
    mask = x > 5
    _, found = below.reduce(Wrapped(mask))
    np.testing.assert_array_equal(found, np.less.reduce(mask))


def test_plain_subclasses_go_on_as_numpy_has_them():
    masked = np.ma.masked_array([1.0, 2.0], mask=[False, True])

    assert isinstance(add.outer(masked, np.ones(2)), np.ma.MaskedArray)
    assert add.reduce(np.ones(3).view(np.recarray)) == 3


@pytest.mark.parametrize("name", ["reduce", "accumulate", "reduceat"])
def test_one_output_in_a_tuple(name, device):
    x = xdev.asarray(np.arange(3.0), device=device)
    rest = (xdev.asarray([0, 1, 2], device=device),) if name == "reduceat" else ()
    call = getattr(add, name)
    expected = xdev.to_numpy(call(x, *rest))
    for form in (
        lambda out: call(x, *rest, out=(out,)),
        lambda out: call(x, *rest, 0, None, (out,)),
    ):
        out = xdev.zeros(expected.shape, dtype=x.dtype, device=device)
        assert form(out) is out
        np.testing.assert_array_equal(xdev.to_numpy(out), expected)
    for wrong in ((), (out, out)):
        with pytest.raises(ValueError, match=rf"add\.{name} has one result.*pass out="):
            call(x, *rest, out=wrong)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x: add.reduce(x, out=5), "pass out= an array of the"),
        (lambda x: add.accumulate(x, out=[1]), "pass out= an array of the"),
        (lambda x: add.reduceat(x, [0], out=(5,)), "pass out= an array of the"),
        (lambda x: add.reduce(x, out=np.zeros((2, 3, 4))), "of the result's shape"),
        (lambda x: add.accumulate(x, out=np.zeros(3)), "of as many dimensions"),
    ],
)
def test_outputs_that_do_not_fit_say_the_way_out(call, words):
    with pytest.raises((TypeError, ValueError), match=words):
        call(np.ones((3, 4)))
