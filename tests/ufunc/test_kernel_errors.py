"""Wrong kernels and calls are told what is wrong, and the way out."""

import numpy as np
import pytest
from running import sums, there

import xdev


@xdev.kernel
def plane(i, j, x):
    x[i, j] = i + j


@xdev.kernel
def scaled(i, x, factor, out):
    out[i] = factor * x[i]


EXTENTS = [
    *(-1, (1, 2, 3, 4), (), ((4,), 0), ((4,), 2048), ((4,), (2, 2))),
    *(((4, 4), 16), ((4, 4, 4), (128, 1, 1)), ((4,), 16, 2), (2**40, 2**40)),
]
NO_INTEGERS = [3.0, "n", None, [3], (3, 2.0), ((3,), 1.0)]


@pytest.mark.parametrize(
    ("key", "error", "words"),
    [
        *((key, ValueError, r"^sums\[") for key in EXTENTS),
        *((key, TypeError, "are integers") for key in NO_INTEGERS),
    ],
    ids=str,
)
def test_wrong_extents_are_refused(key, error, words):
    with pytest.raises(error, match=words):
        sums[key]


def test_arguments_go_by_place_after_extents(device):
    x, out = there(device, np.ones(3), np.zeros(3))

    with pytest.raises(TypeError, match=r"positionally, .* sums\[…\]\(x, y, out\)"):
        sums[3](x, x, out=out)
    with pytest.raises(TypeError, match=r"say for how many points it runs, sums\[n\]"):
        sums(x, x, out)
    assert not xdev.to_numpy(out).any()


@pytest.mark.parametrize(
    ("x", "error", "words"),
    [
        ([1, 2, 3], TypeError, r"not list: pass an array .*xdev.asarray"),
        (np.ma.masked_less(np.arange(3), 1), TypeError, r"MaskedArray: .*x\.filled"),
        (None, TypeError, r"takes .*arrays and numbers, not"),
        (1, TypeError, "got no array"),
        (np.zeros(25, "b")[1:].view("d"), ValueError, "x is not aligned: copy it"),
        *(
            (np.zeros(3, dtype), TypeError, "sums: x has dtype .*which kernels ")
            for dtype in ("f2", ">f4", "O", "M8[s]", "f4,i4")
        ),
    ],
    ids=str,
)
def test_arrays_that_kernels_do_not_take_are_refused(x, error, words):
    out = np.zeros(3)
    with pytest.raises(error, match=words):
        sums[3](x, x, x if type(x) is int else out)
    assert not out.any()


def test_numbers_that_do_not_fit_are_named(device):
    (x,) = there(device, np.ones(3))

    for _ in range(3):  # the quickest way is there, too
        with pytest.raises(OverflowError, match=r"scaled: factor is 1,180,.*int64"):
            scaled[3](x, 2**70, x)
        scaled[3](x, 2, x)
    assert xdev.to_numpy(x).tolist() == [8] * 3


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
def returning(i, x, out):
    out[i:] = x[i]
    return x[i]


@xdev.guvectorize("(n)->(n)")
def highest(x, out):
    out[0] = x.max()


@xdev.kernel
def by_slices(i, x, out):
    out[i:] = x[i:]


@xdev.kernel
def largest(i, x, out):
    out[i] = max(x)


@xdev.kernel
def naming(i, x, out):
    out = np.sqrt(x[i])  # noqa: F841 - the fault


@xdev.kernel
def reading(i, x, out):
    y = x[i] + out[i]  # noqa: F841 - the fault


idle = xdev.kernel(lambda i, x, out: None)  # noqa: ARG005
NO_WRITES = r"writes into no array, .*: assign elements, as out\[i\] = … "


@xdev.kernel
def spelling(i, x, out):
    out[i] = len(f"{i}") + x[i]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (spelling[3], r"compiled code has no str\(int64\): use op.*\n.*:\d+: out\[i\]"),
        (recursive[3], "factorial calls itself"),
        (itself[3], "itself calls the kernel itself.*write a recursion as a loop"),
        (inside, "inside calls the kernel scaled, which runs over"),
        (returning[3], r"it returns float64, .*goes to its arrays.*\n  .*:\d+: def"),
        (highest, "has no max of an array: write a loop over the elements"),
        (by_slices[3], r"new memory is .* x\[:\] = y\[:\].* in a loop\n.*:\d+: out"),
        (plane[3, 3], r"takes the arguments x, not 2: each extent in the brackets"),
        (
            naming[3],
            r"naming writes nothing into out: .* out\[i\] = … .*\n.*: out = np",
        ),
        *((kernel[3], NO_WRITES) for kernel in (reading, idle)),
        (sums[1, 1, 1], "on a 3-d grid takes the arguments out, not 2: "),
    ],
    ids=repr,
)
def test_functions_and_calls_that_cannot_be_say_the_way_out(device, call, words):
    x, out = there(device, np.ones(3), np.zeros(3))
    with pytest.raises(TypeError, match=words):
        call(x, out)
    assert not xdev.to_numpy(out).any()


@xdev.kernel
def counted(_, n, out):  # noqa: ARG001
    for _ in range(4):
        xdev.atomic.add(out, 0, 1.0)


@xdev.kernel
def index_anew(i, n, out):  # noqa: ARG001
    for i in range(4):  # noqa: B007, PLR1704
        xdev.atomic.add(out, 0, 1.0)


@xdev.kernel
def number_anew(i, n, out):
    n = 2.0  # noqa: F841
    xdev.atomic.add(out, 0 * i, 4.0)


@pytest.mark.parametrize("kernel", [counted, index_anew, number_anew])
def test_indices_and_numbers_may_be_bound_anew(device, kernel):
    (out,) = there(device, np.zeros(1))
    for n in (7, 2.5):
        kernel[3](n, out)
    assert xdev.to_numpy(out).tolist() == [24]


def test_the_largest_of_what_may_be_empty_is_refused_on_the_cpu():
    words = r"no max or min of an array: write a loop.* max\(a, b\)\n.*:\d+:"
    with pytest.raises(TypeError, match=words):
        largest[3](np.ones(3), np.zeros(3))


@pytest.mark.parametrize(
    "function", [lambda i, x=1: x[i], lambda i, *x: x[i], len, 3, lambda i: i]
)
def test_wrong_functions_are_refused(function):
    with pytest.raises(TypeError, match="kernel needs a Python function"):
        xdev.kernel(function)
