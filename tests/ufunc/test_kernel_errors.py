"""Wrong kernels and calls are told what is wrong, and the way out."""

import numpy as np
import pytest
from running import ran, there

import xdev


@xdev.kernel
def add(i, x, y, out):
    out[i] = x[i] + y[i]


@xdev.kernel
def plane(i, j, x):
    x[i, j] = i + j


@xdev.kernel
def scaled(i, x, factor, out):
    out[i] = factor * x[i]


EXTENTS = [
    *(-1, (3, -1), (1, 2, 3, 4), (), ((4,), 0), ((4,), 2048), ((4,), (2, 2))),
    *(((4, 4), 16), ((4, 4, 4), (128, 1, 1)), ((4,), 16, 2), (2**40, 2**40)),
]
NO_INTEGERS = [1.5, 3.0, "n", None, [3], (3.0,), (3, 2.0), ((3,), 1.0)]


@pytest.mark.parametrize(
    ("key", "error", "words"),
    [
        *((key, ValueError, r"^add\[") for key in EXTENTS),
        *((key, TypeError, "must be integers") for key in NO_INTEGERS),
    ],
    ids=str,
)
def test_wrong_extents_are_refused(key, error, words):
    with pytest.raises(error, match=words):
        add[key]


def test_arguments_go_by_place_after_extents(device):
    x, out = there(device, np.ones(3), np.zeros(3))

    with pytest.raises(TypeError, match=r"positionally, .* add\[…\]\(x, y, out\)"):
        add[3](x, x, out=out)
    with pytest.raises(TypeError, match=r"say for how many points it runs, add\[n\]"):
        add(x, x, out)
    assert not xdev.to_numpy(out).any()


@pytest.mark.parametrize("wrong", ["text", None, {}], ids=type)
def test_what_is_no_array_is_refused(device, wrong):
    x, out = there(device, np.zeros(3), np.zeros(3))

    with pytest.raises(TypeError, match=r"takes .*arrays and numbers, not|y is not"):
        add[3](x, wrong, out)


@pytest.mark.parametrize(
    ("x", "error", "words"),
    [
        ([1, 2, 3], TypeError, r"list: pass xdev.asarray"),
        (np.ma.masked_less(np.arange(3), 1), TypeError, r"MaskedArray: pass x\.filled"),
        (np.zeros(25, "b")[1:].view("d"), ValueError, "x is not aligned: copy it"),
        *(
            (np.zeros(3, dtype), TypeError, "add: x has dtype .*which kernels do not h")
            for dtype in ("f2", ">f4", "O", "M8[s]", "f4,i4")
        ),
    ],
    ids=str,
)
def test_arrays_that_kernels_do_not_take_are_refused(x, error, words):
    out = np.zeros(3)
    with pytest.raises(error, match=words):
        add[3](x, x, out)
    assert not out.any()


def test_numbers_that_do_not_fit_are_named(device):
    (x,) = there(device, np.ones(3))

    for _ in range(3):  # the quickest way is there, too
        with pytest.raises(OverflowError, match=r"scaled: factor is 1,180,.*int64"):
            scaled[3](x, 2**70, x)
        scaled[3](x, 2, x)
    assert xdev.to_numpy(x).tolist() == [8] * 3


def test_a_function_that_cannot_be_compiled_shows_types_and_line(device):
    @xdev.kernel
    def broken(i, x, out):
        out[i] = x[i]
        out[i] = x[i].nothing_like_that

    x, out = there(device, np.zeros(3, np.float32), np.ones(3))
    words = r"^cannot compile broken\(float32\[:\], float64\[:\]\)(?s:.*)test_kernel_"
    with pytest.raises(
        TypeError, match=rf"{words}errors.py:\d+: out\[i\] = x\[i\].not"
    ):
        broken[3](x, out)
    assert xdev.to_numpy(out).tolist() == [1, 1, 1]


def factorial(n):
    return 1 if n < 2 else n * factorial(n - 1)


@xdev.kernel
def recursive(i, x, out):
    out[i] = factorial(i) * x[i]


@xdev.kernel
def itself(i, x, out):
    itself[i](x, out)


@xdev.guvectorize("(n)->(n)")
def inside(x, out):
    scaled[3](x, 2.0, out)


@xdev.kernel
def by_slices(i, x, out):
    out[i:] = x[i:]


@xdev.kernel
def returning(i, x, out):
    out[i] = x[i]
    return x[i]


@xdev.guvectorize("(n)->(n)")
def highest(x, out):
    out[0] = x.max()


@xdev.guvectorize("(n)->(n)")
def doubled(x, out):
    y = x * 2
    out[0] = y[0]


@xdev.guvectorize("(n)->(n)")
def deleting(x, out):
    y = x[0]
    out[0] = y
    del y


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (recursive[3], "factorial calls itself"),
        (itself[3], "itself calls the kernel itself.*write a recursion as a loop"),
        (inside, "inside calls the kernel scaled, which runs over"),
        (by_slices[3], r"x\[:\] = y\[:\].*elements are assigned in a loop"),
        (returning[3], r"it returns float64, .*goes to its arrays.*\n  .*:\d+: def"),
        (highest, "has no max of an array: write a loop over the elements"),
        (doubled, r"new memory is asked for.* x \* 2 of an array"),
        (deleting, "Python alone has what is there, as with, del"),
        (plane[3, 3], r"takes the arguments x, not 2: .* the extents plane\[n\]"),
        (add[3], r"add\(i, x, y, out\) on a 1-d grid takes .*, not 2: .*"),
        (add[1, 1, 1], "on a 3-d grid takes the arguments out, not 2: .*add.h, w"),
    ],
    ids=repr,
)
def test_functions_and_calls_that_cannot_be_say_the_way_out(device, call, words):
    x, out = there(device, np.ones(3), np.zeros(3))
    with pytest.raises(TypeError, match=words):
        call(x, out)
    assert not xdev.to_numpy(out).any()


def test_a_call_without_arrays_has_nowhere_to_go():
    with pytest.raises(TypeError, match="got no array"):
        add[3](1, 2, 3)


def with_default(i, x=1):
    x[i] = 0


def with_many(i, *args):
    args[0][i] = 0


def with_raise(i, x):
    raise ValueError(x[i])


@pytest.mark.parametrize(
    "function", [with_default, with_many, with_raise, len, 3, lambda i: i]
)
def test_wrong_functions_are_refused(function):
    with pytest.raises(TypeError, match=r"kernel needs a Python function|raises, whic"):
        xdev.kernel(function)


def test_reductions_of_arrays_that_compiled_code_has(device):
    @xdev.guvectorize("(n)->(m)")
    def facts(x, out):
        out[:] = 0.0
        out[0], out[1], out[2] = x.sum(), x.mean(), x[1:].std()
        out[3], out[4], out[5] = np.prod(x), x.var(), np.any(x) and np.all(x)

    x = np.array([[3.0, 1.0, 2.0], [2.0, 0.0, 7.0]])
    given, out = there(device, x, np.zeros((2, 7)))

    facts(given, out)

    for row, one in zip(xdev.to_numpy(out), x, strict=True):
        expected = [one.sum(), one.mean(), one[1:].std(), one.prod()]
        expected += [one.var(), float(one.all()), 0.0]
        np.testing.assert_allclose(row, expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda x: x + 1, "takes 1 input and then 1 output, not 5 a"),
        (lambda x, y: (x + y, x - y), "2 inputs and then up to 2 outputs, not 5"),
    ],
)
def test_calls_with_too_many_arguments_say_how_many_they_take(device, function, words):
    (x,) = there(device, np.ones(3))
    ufunc = xdev.vectorize(function)
    for _ in range(2):
        with pytest.raises(TypeError, match=words):
            ufunc(*[x] * 5)
        ufunc(*[x] * ufunc.nin)


@xdev.kernel
def read_first(i, x, out):
    i = i * 2
    x, y = out, x
    x[i] = y[i]


def test_parameters_are_names_like_others():
    found = ran("cpu", read_first, 2, np.arange(4.0), np.zeros(4))
    assert found.tolist() == [0, 0, 2, 0]
