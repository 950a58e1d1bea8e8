"""The elementwise names as ufuncs: NumPy's keywords, methods, attributes."""

import inspect
import pickle

import numpy as np
import pytest

import xdev

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
A = np.arange(1.0, 13).reshape(3, 4)
Z = np.array([0.5 - 1j, -1.5 + 0j, 2j])
MASK = A > 5
#: Calls of methods, by what they are given: arrays of the device.
METHODS = {
    "add.reduce": lambda f, x: f(x),
    "add.reduce along the last": lambda f, x: f(x, 1),
    "add.reduce of all": lambda f, x: f(x, axis=None, keepdims=True),
    "add.reduce from 5": lambda f, x: f(x, (0, 1), initial=5),
    "multiply.reduce": lambda f, x: f(x, dtype="float32"),
    "maximum.reduce": lambda f, x: f(x, axis=None),
    "minimum.reduce": lambda f, x: f(x, 1, None, None, True),
    "logical_and.reduce": lambda f, x: f(x),
    "add.accumulate": lambda f, x: f(x, 1),
    "maximum.accumulate": lambda f, x: f(x),
    "multiply.reduceat": lambda f, x: f(x, [0, 2], axis=1),
    "subtract.outer": lambda f, x: f(x, x[0]),
    "less.outer": lambda f, x: f(x[0], 3),
    "atan2.outer": lambda f, x: f(x[0], x[1], dtype="float32"),
}
#: What a call of a complex function asks for.
TYPINGS = [
    {"dtype": "d"},
    {"dtype": "D"},
    {"dtype": "F"},
    {"dtype": "F", "casting": "safe"},
    {"dtype": "d", "casting": "unsafe"},
    {"dtype": "D", "signature": "D->D"},
    {"signature": "f->f"},
    {"signature": "d->d", "casting": "unsafe"},
    {"sig": "D->D"},
    {"signature": (None, "D")},
    {"casting": "other"},
    {"casting": "no"},
    {"order": "F", "dtype": None},
]


class Own:
    """An operand with a way of its own."""

    def __array_ufunc__(self, ufunc, method, *inputs, **keywords):
        return ufunc, method, len(inputs), sorted(keywords)


def numpys(name):
    return getattr(np, name)


@pytest.mark.parametrize("call", METHODS)
@pytest.mark.parametrize("kind", ["float64", "int32"])
def test_methods_are_numpys(device, call, kind):
    name, method = call.partition(" ")[0].split(".")
    x = A.astype(kind)
    wanted = METHODS[call](getattr(numpys(name), method), x)
    own = getattr(getattr(xdev, name), method)
    result = METHODS[call](own, xdev.asarray(x, device=device))

    np.testing.assert_allclose(xdev.to_numpy(result), wanted, rtol=1e-6)
    assert result.dtype == wanted.dtype


def test_methods_pickle_and_write_in_place(device):
    assert pickle.loads(pickle.dumps(xdev.add.reduce)) == xdev.add.reduce  # noqa: S301
    x = xdev.asarray([1.0, 4.0, 2.0], device=device)
    xdev.add.at(x, xdev.asarray([0, 0], device=device), 1)
    assert xdev.to_numpy(x).tolist() == [3, 4, 2]


def test_methods_take_arrays_of_one_library(device):
    strict = pytest.importorskip("array_api_strict")
    x, mask = xdev.asarray(A, device=device), strict.asarray(MASK)
    other = strict.asarray(A)
    for call in (
        lambda: xdev.add.reduce(x, where=mask),
        lambda: xdev.add.reduce(x, out=other),
        lambda: xdev.add.accumulate(x, 0, None, other),
        lambda: xdev.add.outer(x, x, where=mask),
        lambda: xdev.add.outer(x, other),
        lambda: xdev.add.at(x, (0, 0), other),
    ):
        with pytest.raises(xdev.DeviceMismatchError):
            call()


def test_a_mask_of_another_type_is_asked():
    own = Own()
    assert xdev.add(A, A, where=own) == (np.add, "__call__", 2, ["where"])
    assert xdev.add.accumulate(own) == (np.add, "accumulate", 1, [])


@pytest.mark.parametrize("out", [np.zeros(3), np.zeros((2, 2))], ids=["1-D", "2-D"])
def test_numbers_are_not_spread_over_an_output(out):
    for args in ((np.float64(1), 2.0), (np.float32(1), np.float64(2))):
        for _ in range(2):  # later calls go by what the first ones made
            xdev.add(*args, out=np.zeros(()))
            with pytest.raises(ValueError, match=r"xdev\.add: out is of shape"):
                xdev.add(*args, out=out)
    assert not out.any()


@pytest.mark.parametrize("name", ["expm1", "log1p", "tanh"])
@pytest.mark.parametrize("asked", TYPINGS, ids=str)
def test_complex_functions_have_numpys_typings(name, asked):
    for x in (Z, Z.astype("F"), Z.real.copy(), np.complex64(1j)):
        try:
            wanted = getattr(np, name)(x, **asked)
        except (TypeError, ValueError) as error:
            with pytest.raises(type(error).__mro__[-4]):
                getattr(xdev, name)(x, **asked)
        else:
            result = getattr(xdev, name)(x, **asked)
            assert (type(result), result.dtype) == (type(wanted), wanted.dtype)
            np.testing.assert_allclose(result, wanted, rtol=1e-6)


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")  # of matrices
@pytest.mark.parametrize("name", ["expm1", "log1p", "tanh"])
def test_complex_functions_leave_derived_classes_to_numpy(name):
    function, own = getattr(xdev, name), getattr(np, name)
    masked = np.ma.array(Z, mask=[False, True, False])
    for _ in range(2):
        result = function(masked)
        np.testing.assert_array_equal(result.mask, masked.mask)
        np.testing.assert_allclose(result.compressed(), own(masked).compressed())
        matrix = function(np.asmatrix(Z))
        assert type(matrix) is np.matrix
        np.testing.assert_allclose(matrix, own(np.asmatrix(Z)))


def test_the_signature_is_numpys_with_the_standards_names():
    given = inspect.signature(xdev.add).parameters.values()
    assert [(x.name, x.default) for x in given] == [
        *(("x1", inspect.Parameter.empty), ("x2", inspect.Parameter.empty)),
        *(("out", None), ("where", True), ("casting", "same_kind"), ("order", "K")),
        *(("dtype", None), ("subok", True), ("signature", None)),
    ]
