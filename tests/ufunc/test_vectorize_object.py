"""The object that ``vectorize`` makes: a ufunc's attributes, methods and refusals."""

import inspect
import pydoc

import numpy as np
import pytest
from running import add, same

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
    assert add.ntypes == len(add.types)
    assert list(inspect.signature(add).parameters)[:3] == ["x", "y", "out"]
    assert "return x + y" in inspect.getsource(add)


def test_reductions_of_a_function_that_changes_the_dtype():
    mean = xdev.vectorize(lambda x, y: (x + y) / 2)

    assert mean.reduce(np.asarray([2, 4, 8])) == (2 + 4) / 4 + 4


def test_defaults_fill_in():
    assert minus(np.arange(3.0)).tolist() == [-1, 0, 1]


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"target": "gpu"}, ValueError, "'cpu', 'parallel', 'cuda', None"),
        ({"identity": 7}, ValueError, "reorderable"),
        ({"nopythn": True}, TypeError, "valid are target, identity, fastmath"),
        ({"nopython": False}, TypeError, "leave nopython=False out"),
    ],
)
def test_wrong_options_are_refused(options, error, words):
    with pytest.raises(error, match=words):
        xdev.vectorize(**options)


@pytest.mark.parametrize(
    "function", [3, int, lambda *xs: xs, lambda: 1, lambda x, *, y: x + y, np.add]
)
def test_only_functions_of_plain_arguments(function):
    with pytest.raises(TypeError, match="vectorize needs a Python function"):
        xdev.vectorize(function)


def test_a_signature_of_another_arity():
    with pytest.raises(TypeError, match="takes 1 arguments, but a signature has 2"):
        xdev.vectorize(["f4(f4,f4)"])(lambda x: x)


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


def test_small_results_are_tracked_while_tracking_is_on():
    x = np.ones(10, "f")
    add(x, x)

    with xdev.memory.track():
        results = [add(x, x), add(x, 1.0)]
        found = xdev.memory.outstanding("cpu")
        live = [item for item in found if "test_vec" in str(item)]
        assert len(live) == 2
        del results
    assert add(x, x).base is None


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


@xdev.guvectorize("(n)->(n)")
def filled(x, out):
    out[:] = x[0]


@pytest.mark.parametrize(
    "name", ["nin", "nout", "nargs", "types", "ntypes", "identity", "signature"]
)
def test_attributes_of_ufuncs_cannot_be_set(name):
    for each in (np.add, add, *[filled] * (name != "identity")):
        before = getattr(each, name)
        with pytest.raises(AttributeError, match=f"{name}"):
            setattr(each, name, 3)
        assert getattr(each, name) == before
    add.note = "of mine"  # others can
    assert add.note == "of mine"


# How many arguments, and an out by position, on every device.


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


FUNCTIONS = [
    lambda a: a + 1,
    lambda a, b: a + b,
    lambda a, b, c: a * b + c,
    lambda a, b, c, d: a * b + c * d,
]


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("shape", [(5,), (4, 6)])
def test_an_output_may_follow_the_inputs(device, function, shape):
    f = xdev.vectorize(function)
    x = np.arange(np.prod(shape), dtype="f4").reshape(shape)
    there = xdev.asarray(x, device=device)
    for step in (1, 2, 1):  # from the second time by the quick ways
        out = xdev.zeros_like(there)[::step]

        assert f(*[there[::step]] * f.nin, out) is out
        same(out, function(*[x[::step]] * f.nin))


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
        assert xdev.to_numpy(two).tolist() == [-1, 0, 1, 2]
        same(second, xdev.to_numpy(two))
