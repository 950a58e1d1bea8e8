"""What usual mistakes in kernels and calls are told: what is wrong, and the way out."""

import numpy as np
import pytest

import xdev


@xdev.kernel
def scaled(i, x, factor, out):
    out[i] = factor * x[i]


@xdev.kernel
def itself(i, out):
    itself[i](out)


@xdev.kernel
def another(i, x, out):
    scaled(i, x, 2.0, out)


@xdev.guvectorize("(n)->(n)")
def inside(x, out):
    scaled[3](x, 2.0, out)


@xdev.kernel
def by_slices(i, x, out):
    out[i:] = x[i:]


@xdev.kernel
def assigning(i, x, out):
    if (y := x[i]) > 1:
        out[i] = y


@xdev.kernel
def generating(i, x, out):
    out[i] = sum(x[i] * k for k in range(3))


@xdev.kernel
def returning(i, x):
    return x[i]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (itself[3], "itself calls itself: write the recursion as a loop"),
        (
            lambda x: another[3](x, x),
            "another calls the kernel scaled, which runs over",
        ),
        (inside, "inside calls the kernel scaled"),
        (
            lambda x: by_slices[3](x, x.copy()),
            r"x\[:\] = y\[:\].*elements are assigned in a loop",
        ),
        (lambda x: assigning[3](x, x), r"\(y := …\), write it before"),
        (lambda x: generating[3](x, x), r"a generator expression.*: write a loop"),
        (
            lambda x: scaled[3, 3](x, 2.0, x),
            r"2 arguments \(factor, out\), not 3: each extent.* an index.*scaled\[n\]",
        ),
        (lambda x: scaled[3](x, 2.0), r"factor, out\), not 2: out is missing; each"),
        (scaled[3], "not 1: factor, out are missing"),
        (returning[3], r"it returns float64, .*\n  .*:\d+: def returning"),
    ],
)
def test_kernels(call, words):
    with pytest.raises(TypeError, match=words):
        call(np.ones(3))


def highest(x, out):
    out[0] = x.max()


def lowest(x, out):
    out[0] = np.min(x)


def middle(x, out):
    out[0] = np.median(x)


def product(x, out):
    out[0] = np.dot(x, x)


def doubled(x, out):
    y = x * 2
    out[0] = y[0]


def zeroed(x, out):
    out[0] = np.zeros(3)[0] + x[0]


def deleting(x, out):
    y = x[0]
    out[0] = y
    del y


WHOLE = "compiled code has no {} of an array: write a loop over the elements"


@pytest.mark.filterwarnings("ignore:np.dot")  # numba-cuda's, and Numba's, of its speed
@pytest.mark.parametrize(
    ("function", "words"),
    [
        (highest, WHOLE.format("max")),
        (lowest, WHOLE.format("min")),
        (middle, WHOLE.format("median")),
        (product, f"{WHOLE.format('dot')}|no linear algebra"),
        (doubled, r"new memory is asked for.* x \* 2 of an array"),
        (zeroed, "new memory is asked for"),
        (deleting, "compiled code has no del: leave that line out"),
    ],
)
def test_operations_on_whole_arrays_say_the_way_out(function, words, device):
    x = xdev.asarray(np.ones(3), device=device)

    with pytest.raises(TypeError, match=words):
        xdev.guvectorize("(n)->()")(function)(x)


def test_reductions_of_arrays_that_compiled_code_has(device):
    @xdev.guvectorize("(n)->(m)")
    def facts(x, out):
        out[:] = 0.0
        out[0], out[1], out[2] = x.sum(), x.mean(), x[1:].std()
        out[3], out[4], out[5] = np.prod(x), x.var(), np.any(x) and np.all(x)

    x = np.array([[3.0, 1.0, 2.0], [2.0, 0.0, 7.0]])
    out = xdev.zeros((2, 7), device=device)

    facts(xdev.asarray(x, device=device), out)

    for row, given in zip(xdev.to_numpy(out), x, strict=True):
        expected = [given.sum(), given.mean(), given[1:].std(), given.prod()]
        expected += [given.var(), float(given.all()), 0.0]
        np.testing.assert_allclose(row, expected, rtol=1e-12)


def test_numbers_that_do_not_fit_are_named(device):
    x = xdev.asarray(np.ones(3), device=device)

    for _ in range(3):  # the quickest way is there, too
        with pytest.raises(OverflowError, match=r"scaled: factor is 1,180,.*int64"):
            scaled[3](x, 2**70, x)
        scaled[3](x, 2, x)
    assert xdev.to_numpy(x).tolist() == [8] * 3


def test_calls_with_too_many_arguments_say_how_many_they_take(device):
    x = xdev.asarray(np.ones(3), device=device)
    one = xdev.vectorize(lambda x: x + 1)
    two = xdev.vectorize(lambda x, y: (x + y, x - y))

    for _ in range(2):
        with pytest.raises(TypeError, match="takes 1 input and then 1 output, not 3 a"):
            one(x, x, x)
        with pytest.raises(TypeError, match="2 inputs and then up to 2 outputs, not 5"):
            two(x, x, x, x, x)
        one(x)
        two(x, x)


def test_a_parameter_that_is_only_bound_anew_is_refused():
    def forgotten(i, x, out):
        out = x[i]  # noqa: F841

    with pytest.raises(TypeError, match=r"forgotten: out = … .* write out\[…\] = …"):
        xdev.kernel(forgotten)

    def total(x, out):
        out = 0.0
        for k in range(x.shape[0]):
            out += x[k]  # read again: whoever wrote this knows

    xdev.guvectorize("(n)->()")(total)

    def summed(x, out):
        for k in range(x.shape[0]):
            s = x[k]
            out, x = s, k  # noqa: F841

    with pytest.raises(TypeError, match="summed: out = …"):
        xdev.guvectorize("(n)->()")(summed)

    @xdev.kernel
    def read_first(i, x, out):
        i = i * 2
        x, y = out, x
        x[i] = y[i]

    out = np.zeros(4)
    read_first[2](np.arange(4.0), out)
    assert out.tolist() == [0, 0, 2, 0]
