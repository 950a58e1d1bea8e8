"""The object that ``vectorize`` makes: attributes, outputs, calls like one before."""

import gc
import inspect
import pydoc
import weakref

import numpy as np
import pytest
from running import RAISED, add, dot, pickled, same

import xdev
from xdev.ufunc import Ufunc

minus = xdev.vectorize(lambda x, y=1: x - y)


X = np.random.default_rng(0).integers(-50, 50, size=(6, 7)).astype("d")


def test_it_tells_what_a_ufunc_tells():
    add(X, X)

    assert (add.nin, add.nout, add.nargs, add.identity) == (2, 1, 3, 0)
    assert add.signature is None
    assert (add.__name__, add.__doc__) == ("add", "Return the sum.")
    assert "dd->d" in add.types
    for name in ("nin", "nout", "identity", "signature"):
        with pytest.raises(AttributeError):
            setattr(add, name, 3)
    assert add.ntypes == len(add.types)
    assert list(inspect.signature(add).parameters)[:3] == ["x", "y", "out"]
    assert "return x + y" in inspect.getsource(add)


def test_reductions_of_a_function_that_changes_the_dtype():
    mean = xdev.vectorize(lambda x, y: (x + y) / 2)

    assert mean.reduce(np.asarray([2, 4, 8])) == (2 + 4) / 4 + 4


def test_defaults_fill_in():
    assert minus(np.arange(3.0)).tolist() == [-1, 0, 1]


def test_wrong_options_and_functions_are_refused():
    no_function = 3, int, lambda *xs: xs, lambda: 1, lambda x, *, y: x + y, np.add
    for call, error, words in (
        (lambda f: f(target="gpu"), ValueError, "'cpu', 'parallel', 'cuda', None"),
        (lambda f: f(identity=7), ValueError, "reorderable"),
        (lambda f: f(nopythn=True), TypeError, "valid are target, identity, fastmath"),
        (lambda f: f(nopython=False), TypeError, "leave nopython=False out"),
        (lambda f: f(["f4(f4,f4)"])(abs_), TypeError, "1 arguments, but a signature"),
        *(
            (lambda f, x=x: f(x), TypeError, "vectorize needs Python functions")
            for x in no_function
        ),
    ):
        with pytest.raises(error, match=words):
            call(xdev.vectorize)


def abs_(x):
    return abs(x)


@pytest.mark.parametrize("target", ["cpu", "parallel", None])
def test_every_form_of_the_decorator(target):
    forms = [
        xdev.vectorize(target=target, cache=True, nopython=True),
        xdev.vectorize("float64(float64)", target=target),
        xdev.vectorize(["float64(float64)"], target=target),
    ]
    for decorate in forms:
        f = decorate(lambda x: 2 * x)
        assert isinstance(f, Ufunc)
        assert f(1.5) == 3


def test_help_of_a_function_without_a_docstring_shows_how_it_is_called():
    def total(a, b):
        return a + b

    def first(a, b, out):
        out[0] = a[0] + b[0]

    def copied(i, a, out):
        out[i] = a[i]

    for made, shown in (
        (xdev.vectorize(total), "total(a, b, /, out=None, *,"),
        (xdev.guvectorize("(n),(n)->()")(first), "first(a, b, out)"),
        (xdev.kernel(copied), "copied(i, a, out)"),
    ):
        text = pydoc.plain(pydoc.render_doc(made))
        assert shown in text
        assert "scalar" not in text


@pytest.mark.parametrize(
    "x", [np.ones((300, 400)).T, np.ones((20, 30, 40)).swapaxes(0, 1)]
)
def test_large_results_are_counted_and_can_be_freed(x):
    before = xdev.memory.allocated("cpu")
    pairs, sums = add.outer(x[0, :100], x), add.accumulate(x)

    assert xdev.memory.allocated("cpu") - before >= pairs.nbytes + sums.nbytes
    np.testing.assert_array_equal(pairs, np.add.outer(x[0, :100], x))
    np.testing.assert_array_equal(sums, np.add.accumulate(x))
    made = add(x, x)
    before = xdev.memory.allocated("cpu")
    xdev.memory.free(made)
    assert xdev.memory.allocated("cpu") <= before - x.nbytes


def test_several_outputs_may_follow_the_inputs(device):
    f = xdev.vectorize(lambda a, b: (a + b, a - b))
    x = xdev.asarray(np.arange(4.0), device=device)
    for _ in range(2):
        one, two = xdev.zeros_like(x), xdev.zeros_like(x)

        made = f(x, 1.0, one, two)
        assert made[0] is one
        assert made[1] is two
        first, second = f(x, 1.0, one)  # and NumPy makes the others
        assert first is one
        same(second, xdev.to_numpy(two))


DTYPES = "?", "u1", "i4", "f4", "c8"
BIG = 1.5e308


divide = xdev.vectorize(lambda x, y: x / y)
multiply = xdev.vectorize(lambda x, y: x * y)
twice = xdev.vectorize(lambda x: x + x)


def unpickled(values, dtype):
    """Return an array as from another process: its dtype is an object of its own."""
    return pickled(np.array(values, dtype))


def test_a_dtype_at_the_address_of_another_is_no_other_dtype():
    @xdev.kernel
    def copy(i, x, out):
        out[i] = x[i]

    many = [unpickled(np.arange(3000) % 2, dtype) for dtype in DTYPES * 4]
    for x in many:
        twice(x)
    del x
    many.clear()  # their dtypes' memory is for others now
    for turn in range(100):
        dtype = np.dtype(DTYPES[turn % len(DTYPES)])
        x = unpickled([1, 0, 1], dtype)
        made = multiply(x, x)
        assert made.dtype == dtype
        assert made.tolist() == (x * x).tolist()
        assert multiply(x, x, out=made) is made
        assert made.tolist() == (x * x).tolist()
        assert xdev.multiply(x, x).dtype == dtype
        out = unpickled([0, 0, 0], dtype)
        copy[3](x, out)
        assert out.tolist() == x.tolist()
        total = dot(x, x)
        assert total.dtype == dtype
        assert total == (x * x).sum(dtype=dtype)


@pytest.mark.parametrize("error", RAISED, ids=repr)
@pytest.mark.parametrize("n", [3, 100_000])
def test_what_a_handler_raises_ends_the_call(raised_by_handler, error, n):
    x, zeros, out = np.full(n, BIG), np.zeros(n), np.ones(n)
    calls = (
        lambda: divide(x, zeros),
        lambda: divide(x, zeros, out=out),
        lambda: divide(x, zeros, where=x > 0, out=out),
        lambda: divide(x, [0.0] * n),
        lambda: divide.outer(x[:3], zeros[:3]),
        lambda: divide.at(x.copy(), [0], zeros[:1]),
        lambda: multiply.reduce(x),
        lambda: multiply.reduce(x, initial=2, out=np.array(1.0)),
        lambda: multiply.accumulate(x),
        lambda: multiply.reduceat(x, [0]),
        lambda: dot(x, x),
        lambda: dot(x, x, out=np.array(1.0)),
    )
    for call in calls:
        with np.errstate(all="ignore"):
            for _ in range(3):
                call()
        for _ in range(2):
            assert raised_by_handler(error, call)


FACADES = xdev.add, xdev.abs, xdev.sum, xdev.matmul, xdev.where, xdev.clip


@pytest.mark.parametrize("count", [10, 300_000])
def test_too_many_arguments_are_refused(device, count):
    x = xdev.ones(3, device=device)

    @xdev.kernel
    def add(i, x, out):
        out[i] += x[i]

    many = [x] * count
    for _ in range(3):
        multiply(x, x)
        twice(x)
        add[3](x, xdev.zeros(3, device=device))
        for call in multiply, twice, dot, add[3], *FACADES:
            words = "positional argument" if call in FACADES else "argument"
            with pytest.raises(TypeError, match=words):
                call(*many)


def test_no_call_keeps_its_arrays(device):
    x, out = xdev.ones(50, device=device), xdev.zeros(50, device=device)
    for _ in range(3):
        result = weakref.ref(multiply(x, x))
        multiply(x, x, out=out)
    kept = [weakref.ref(x), weakref.ref(out)]
    del x, out
    gc.collect()
    assert [each() for each in (result, *kept)] == [None] * 3
