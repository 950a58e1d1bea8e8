"""Signatures in every form that Numba's decorators take, and several results."""

import numba
import numpy as np
import pytest
from numba import types

import xdev


def both(x, y):
    return x + y, x - y


def total(x, y):
    return x + y


SEVERAL = [
    ("UniTuple(float64, 2)(float64, float64)", "dd->dd"),
    ("Tuple((f8, i8))(f8, f8)", "dd->dl"),
    ("Tuple([f4, f8])(f8, f8)", "dd->fd"),
    ("(float64, int32)(float64, float64)", "dd->di"),
    (types.UniTuple(types.f8, 2)(types.f8, types.f8), "dd->dd"),
    (types.Tuple((types.f8, types.i8))(types.f8, types.f8), "dd->dl"),
]


@pytest.mark.parametrize(("signature", "typing"), SEVERAL)
@pytest.mark.parametrize("listed", [False, True])
def test_several_results_are_a_tuple_of_types(device, signature, typing, listed):
    function = xdev.vectorize([signature] if listed else signature)(both)
    x, y = np.array([1.0, 5.0]), np.array([2.0, 3.0])

    found = function(*(xdev.asarray(each, device=device) for each in (x, y)))

    assert function.types == [typing]
    assert function.nout == 2
    for one, expected, char in zip(found, both(x, y), typing[-2:], strict=True):
        assert one.dtype.char == char
        np.testing.assert_array_equal(xdev.to_numpy(one), expected)


INFERRED = [
    "(int64, int64)",
    "int64, int64",
    "int64(int64, int64,)",
    (types.int64, types.int64),
    types.int64(types.int64, types.int64),
]


@pytest.mark.parametrize("signature", INFERRED, ids=str)
@pytest.mark.parametrize("container", [list, tuple])
def test_what_is_returned_is_inferred(device, signature, container):
    function = xdev.vectorize(container([signature]))(total)
    x = np.array([2, -3], np.int16)  # which int64 takes

    found = function(*[xdev.asarray(x, device=device)] * 2)

    assert function.types == numba.vectorize([signature])(total).types == ["ll->l"]
    assert function.nout == 1
    assert found.dtype == np.int64
    np.testing.assert_array_equal(xdev.to_numpy(found), x + x)


def test_a_signature_alone_may_leave_out_what_is_returned():
    for text in ("(f4, f4)", "f4, f4"):
        assert xdev.vectorize(text)(total).types == ["ff->f"]


def test_several_results_are_inferred():
    function = xdev.vectorize(["(f4, f4)"])(both)
    assert function.nout == 2
    assert function.types == ["ff->ff"]


def test_signatures_come_in_sets():
    forms = {"f8(f8, f8)", "f4(f4, f4)"}
    found = xdev.vectorize(forms)(total)
    assert set(found.types) == set(numba.vectorize(forms)(total).types)


def test_one_argument_is_a_type_alone():
    assert xdev.vectorize(["f4", types.f8])(lambda x: x + x).types == ["f->f", "d->d"]


def test_too_few_types_are_refused():
    for signature in ("(f8)", "f8", "quux", "quux(f8)", "UniTuple(f8, 2)(f8)"):
        with pytest.raises(TypeError, match=r"signature|no type"):
            xdev.vectorize([signature])(total)


def test_numbers_of_results_that_differ_are_refused():
    function = xdev.vectorize(["UniTuple(f8, 3)(f8, f8)"])(both)
    with pytest.raises(TypeError, match="returns 2 values, not 3"):
        function(1.0, 2.0)


@pytest.mark.parametrize(
    "signature", ["Tuple(f8, 2)(f8)", "f8 f8", "f8(f8", "float32()", 3, ""]
)
def test_others_are_no_signatures(signature):
    with pytest.raises(TypeError, match="is not a signature: write it"):
        xdev.vectorize([signature])(total)


@pytest.mark.parametrize(
    ("args", "options"),
    [
        ((), {"signature": "(n)->(n)"}),
        ((["void(float64[:], float64[:])"],), {"signature": "(n)->(n)"}),
    ],
)
def test_core_dimensions_go_by_their_name(device, args, options):
    @xdev.guvectorize(*args, **options)
    def doubled(x, out):
        for k in range(len(x)):
            out[k] = 2 * x[k]

    found = doubled(xdev.asarray(np.arange(3.0), device=device))

    assert xdev.to_numpy(found).tolist() == [0, 2, 4]
