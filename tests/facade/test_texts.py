"""What errors say: the argument, what it is, and what works."""

import numpy as np
import pytest

import xdev

NO_ARRAY = r"is not an array but "
NO_FILL = r"fill_value is .*no number: give a bool"
#: Calls by their texts, on every device: ``f``, ``i``, ``b``, ``c`` are arrays of
#: float64, integers, booleans and complex numbers, ``m`` is 2-D and ``one`` 0-d.
TYPE_ERRORS = {
    # data types
    "bitwise_or(b, xp.astype(f, 'f4'))": "integers, and x2 is float32: .*astype.x2",
    "bitwise_invert(f)": "bool and integers, and x is float64: convert it",
    "bitwise_and(i, 1.5)": "bool and integers, and x2 is float: give another number$",
    "atan2(f, c)": r"real floats, and x2 is complex128: take xdev\.real\(x2\)",
    # what is no array, or no list of them
    "concat(f)": r"^xdev\.concat: arrays is .*, and must be a list or a tuple of arr",
    "add(f, None)": rf"x2 {NO_ARRAY}.*NoneType",
    "where(f > 0, f, None)": rf"x2 {NO_ARRAY}.*NoneType",
    "sum([1, 2])": r"xdev\.sum: ",
    "add('abc', object())": r"xdev\.add: ",
    "sum(np.void(b'ab'))": r"an array but .*make one with numpy\.as",
    "add(1, 2.0)": "none of x1, x2 is an array",
    "sin(1.0)": "x is",
    "full(2, np.ones(3), dtype='f8')": NO_FILL,
    "full(2, 'a')": NO_FILL,
    "full_like(f, np.asarray(None))": NO_FILL,
    # shapes
    "reshape(f, 2, 3)": "the extents of a shape go in one tuple",
    "reshape(f, (2, 3), True)": r"copy=\.\.\.\).*it got 3 positional arguments$",
    "mean(f, 0, True)": r"^mean takes x and axis positionally and keepdims by keyword",
    "zeros(2, 3)": "the extents of a shape go in one tuple",
    # keywords of NumPy's
    "std(f, ddof=1)": r"'ddof' \(NumPy's\): use correction=",
    "clip(f, a_min=0)": r"'a_min' \(NumPy's\): use min=",
    "mean(f, dtype='f4')": r"'dtype' \(NumPy's\): leave it out, or use xdev.numpy.",
    "any(f, where=f > 0)": r"'where' \(NumPy's\): leave it out, .*xdev\.numpy\.any",
    "sort(f, kind='stable')": r"'kind' \(NumPy's\): use stable=",
    "linspace(0, 1, 5, retstep=True)": r"leave it out, or use xdev\.numpy\.linspace",
    "where(f > 0)": r"xdev\.nonzero\(condition\)",
    "round(f, 2)": r"out is not an array but int: .*xdev\.numpy\.round takes decimals",
    "sum(f, axes=0)": "'axes': it takes x, axis, dtype and keepdims",
    # numbers
    "arange('a', 5)": r"xdev\.arange: start is not a number but .*give one",
    "arange(0, [1])": r"xdev\.arange: stop is not a number but .*give one",
    "eye(2.5)": r"eye: n_rows is .*: give a whole",
    "linspace(0, 1, [2])": r"linspace: num is .*: give a whole",
    "asarray([1, {}], dtype='f8')": ".",
    "fft.fftfreq('a')": r"xdev\.fft\.fftfreq: n is ",
    "fft.rfftfreq(4, d='a')": r"xdev\.fft\.rfftfreq: d",
    # a device for a data type
    "zeros(3, 'fake')": r"'fake' is a device .*: give device='fake'",
    "zeros(3, 'float23')": r"'float23' is not a data type of \w+: use one of xdev",
    # ufuncs
    "round(f, decimals=2)": r"'decimals'; .*; xdev\.numpy\.round takes decimals",
    "add(x1=f, x2=f, other=1)": r"no keyword 'x1'; .*; positionally go x1, x2",
    "add(f, f, out=None, b=1, a=2)": r"xdev\.add\(\) has no keyword 'b'",
    "add.reduce([1.0, 2.0])": rf"xdev\.add\.reduce: array {NO_ARRAY}list",
    "add.reduce(f, out=[1.0])": rf"add\.reduce: out {NO_ARRAY}list",
    "add.reduce(f, where=[True])": rf"add\.reduce: where {NO_ARRAY}list",
}
VALUE_ERRORS = {
    "fft.fftfreq(0, d=2)": r"xdev\.fft\.fftfreq: n is ",
    "fft.fftfreq(4, d=-0.0)": r"xdev\.fft\.fftfreq: d",
    "arange(10, step=0)": r"xdev\.arange: step is .* use another",
    # matrices and vectors
    "linalg.outer(m, f)": "must be 1-D|one-dim",
    "linalg.cross(f, f)": "3",
    "matmul(m, xp.ones(3))": r"1 is of shape \(2, 2\).*x1 must .*xdev\.multiply",
    "matmul(f, one)": r"x2 of shape \(\): .*of x1 must .*xdev\.multiply",
    "linalg.matrix_rank(f)": "matrix_rank: x is 1-D, and must",
    "linalg.qr(m, 'raw')": "mode is 'raw', and must be",
    "vecdot(m, xp.concat([m, m], axis=1))": ".",
    "nonzero(one)": "0d|zero-dimensional",
    "add(f, f, out=(f, f))": "has 1 outputs, but out has 2: pass one",
    "concat([])": "at least one array",
    "stack([])": "at least one array",
    "empty((2, -3))": ".",
    "ones((2**40, 2**40))": ".",
    "zeros(2**70)": ".",
}


@pytest.mark.parametrize("written", [*TYPE_ERRORS, *VALUE_ERRORS])
def test_a_refusal_says_what_and_what_to_do(device, written):
    error = TypeError if written in TYPE_ERRORS else ValueError
    f, m = xdev.ones(2, device=device), xdev.ones((2, 2), device=device)
    names = {"f": f, "m": m, "i": xdev.astype(m, "i8"), "b": xdev.astype(m, "?")}
    if written.startswith(("bitwise", "atan2", "floor")):
        names["f"] = m
    if written.startswith("bitwise_and(i"):
        names["i"] = xdev.astype(f, "i8")
    names |= {"c": xdev.astype(m, "c16"), "one": xdev.asarray(1.0, device=device)}

    with (
        xdev.use_device(device),
        pytest.raises(error, match=(TYPE_ERRORS | VALUE_ERRORS)[written]) as caught,
    ):
        eval(f"xp.{written}", {"xp": xdev, "np": np, **names})  # noqa: S307 - the tables
    if written.startswith("bitwise"):
        assert caught.value.__suppress_context__, "NumPy's own text is not shown"


def test_numpys_own_error_names_what_freed_an_array():
    x = xdev.ones((2, 2), device="cpu")
    xdev.memory.free(x)
    with pytest.raises(TypeError, match=r"freed before, by xdev\.memory\.free"):
        x + 1
