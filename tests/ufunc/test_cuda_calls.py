"""Ufunc calls on a real GPU, against NumPy."""

import itertools

import numpy as np
import pytest
from cuda_functions import above, add, chain, sample, sine

from xdev.ufunc.cuda_methods import CudaMethods

pytestmark = [
    pytest.mark.cuda,
    pytest.mark.usefixtures("cuda"),
    # numba-cuda's own import, under NumPy 2.5:
    pytest.mark.filterwarnings("ignore:The 'generic' unit:DeprecationWarning"),
]


SIZES = [0, 1, 3, 255, 4096, 100_003]


LAYOUTS = {
    "contiguous": lambda x: x,
    "misaligned": lambda x: x[1:],
    "misaligned by more": lambda x: x[3:],
    "skipped": lambda x: x[::2],
    "reversed": lambda x: x[::-1],
}


@pytest.mark.parametrize("char", "bhilBHILefdFD")
@pytest.mark.parametrize("layout", LAYOUTS)
def test_sums_of_every_dtype_and_layout_equal_numpy(cp, char, layout):
    view = LAYOUTS[layout]
    for size in SIZES:
        whole = sample(size, char), sample(size, char, 1)
        x, y = map(view, whole)
        dx, dy = (view(cp.asarray(each)) for each in whole)

        made = add(dx, dy)

        assert made.dtype == x.dtype
        np.testing.assert_array_equal(made.get(), x + y)
        out = view(cp.full(size, 77, x.dtype))
        assert add(dx, dy, out) is out
        np.testing.assert_array_equal(out.get(), x + y)


@pytest.mark.parametrize(("a", "b"), list(itertools.product("?bIefD", repeat=2)))
def test_mixed_dtypes_promote_as_numpy_does(cp, a, b):
    if a == b == "?":
        pytest.skip("NumPy adds bools as 'or', Python as integers")
    x, y = sample((40, 50), a), sample((40, 50), b, 1)

    made = add(cp.asarray(x), cp.asarray(y))

    assert made.dtype == (x + y).dtype
    np.testing.assert_array_equal(made.get(), x + y)


@pytest.mark.parametrize("char", "befdD")
def test_operands_misaligned_apart(cp, char):
    whole = [sample(100_003, char, seed) for seed in range(3)]
    for starts in itertools.product((0, 1, 2, 5), repeat=3):
        x, y, _ = (v[s : s + 99_000] for v, s in zip(whole, starts, strict=True))
        dx, dy = (
            cp.asarray(v)[s : s + 99_000]
            for v, s in zip(whole[:2], starts[:2], strict=True)
        )
        memory = cp.asarray(whole[2])

        add(dx, dy, memory[starts[2] : starts[2] + 99_000])

        expected = whole[2].copy()
        expected[starts[2] : starts[2] + 99_000] = x + y
        np.testing.assert_array_equal(memory.get(), expected)


ROWS = {
    "row": lambda x: x[0],
    "column": lambda x: x[:, :1],
    "inner": lambda x: x[:, 3:-2],
    "odd": lambda x: x[:, 1:],
    "every other column": lambda x: x[:, ::2],
    "transposed": lambda x: x.T,
    "backwards": lambda x: x[::-1, ::-1],
}


@pytest.mark.parametrize("char", "befD")
@pytest.mark.parametrize("name", ROWS)
def test_matrices_by_rows_twice(cp, char, name):
    x, y = sample((501, 501), char), ROWS[name](sample((501, 501), char, 1))
    dx, dy = cp.asarray(x), ROWS[name](cp.asarray(sample((501, 501), char, 1)))
    if name in {"inner", "odd", "every other column"}:
        x, dx = ROWS[name](x), ROWS[name](dx)
    for out in (
        cp.empty(x.shape, char),
        cp.empty((501, 600), char)[:, 3 : 3 + x.shape[1]],
    ):
        for _ in range(2):  # the second time by the fast way
            out[...] = 99
            assert add(dx, dy, out) is out
            np.testing.assert_array_equal(out.get(), x + y)
    np.testing.assert_array_equal(add(dx, dy).get(), x + y)


def test_what_is_learnt_of_one_layout_serves_no_other_of_its_size(cp):
    x, y = sample((64, 128), "f"), sample((64, 128), "f", 1)
    pairs = [(x, y), (x, y[0]), (x[:1], y), (x.ravel(), y.ravel()), (x, y[:1, :1])]
    for order in itertools.permutations(range(len(pairs)), 3):
        add.launches.forget()
        for i in order * 2:
            a, b = pairs[i]
            out = cp.empty((a + b).shape, "f")
            add(cp.asarray(a), cp.asarray(b), out)
            np.testing.assert_array_equal(out.get(), a + b)
            made = add(cp.asarray(a), cp.asarray(b))
            np.testing.assert_array_equal(made.get(), a + b)


def test_a_chain_of_products_and_sums_rounds_as_numpy_does(cp):
    a, x, y = (sample(10_007, "f", i) for i in range(3))

    made = chain(*[cp.asarray(v) for v in (a, x, y)])

    np.testing.assert_array_equal(made.get(), a * x + y * np.float32(3) - x * x)


@pytest.mark.parametrize("char", "bhBHefdF?")
def test_numbers_of_every_dtype_reach_the_kernel(cp, char):
    x, number = sample((33, 7), char), sample(1, char, 3)[0]

    for view in (x, x[:, ::2]):
        if char == "F":
            made, expected = add(cp.asarray(view), number), view + number
        else:
            made, expected = above(cp.asarray(view), number), view > number
        np.testing.assert_array_equal(made.get(), expected)


def test_half_is_computed_in_float(cp):
    x, y = sample(3001, "e"), sample(3001, "e", 1)

    made = chain(*[cp.asarray(x), cp.asarray(y), cp.asarray(x)])

    single = [v.astype(np.float32) for v in (x, y, x)]
    expected = single[0] * single[1] + single[2] * 3 - single[1] * single[1]
    np.testing.assert_array_equal(made.get(), expected.astype(np.float16))


@pytest.mark.parametrize("char", "fd")
def test_math_is_within_two_ulp(cp, char):
    x = sample(10_000, char)

    made = sine(cp.asarray(x)).get()

    np.testing.assert_array_max_ulp(made, np.sin(x.astype("d")).astype(char), 2)


@pytest.mark.parametrize("shift", [-5, -1, 0, 1, 5])
@pytest.mark.parametrize("step", [1, -1])
def test_overlap_is_as_in_numpy_on_the_first_and_the_fast_call(cp, shift, step):
    n = 50_000
    for _ in range(2):
        ours, theirs = cp.arange(n + 20.0), np.arange(n + 20.0)
        for memory, function in ((ours, add), (theirs, np.add)):
            x, out = memory[5 : 5 + n], memory[5 + shift : 5 + shift + n][::step]
            function(x, x, out)
        np.testing.assert_array_equal(ours.get(), theirs)


ufunc_methods = CudaMethods(add._cuda, 0)


@pytest.mark.full_card
def test_more_elements_than_32_bits_count(cp):
    n = 2**31 + 7
    x = cp.ones(n, "b")
    out = cp.empty(n, "b")

    add(x, x, out)

    assert int(out[0]) == int(out[-1]) == int(out[2**31]) == 2
    add(x[::-1], x, out)
    assert bool((out == 2).all())
    out[...] = 0
    add(x[1:], x[:-1], out[1:])  # misaligned
    assert int(out[0]) == 0
    assert bool((out[1:] == 2).all())
    rows = n // 2**16
    square, row = (v[: rows * 2**16].reshape(rows, -1) for v in (x, out))
    out[...] = 0
    add(square, square[0], row)
    assert bool((row == 2).all())
    total = ufunc_methods.reduce(x, axis=0, dtype="l")
    assert int(total) == n


def test_float64_is_not_shortened_by_a_float_out(cp):
    x, out = cp.asarray(sample(100, "d")), cp.empty(100, "f")

    add(x, x, out)

    np.testing.assert_array_equal(out.get(), (x.get() * 2).astype("f"))
