"""What kernels and generalized ufuncs launch on CUDA, run on the host instead.

All is real but the driver and the kernels' machine code: their functions, compiled for
the host, read the same parameter. The fixture ``made`` lists those that are loaded.
"""

import numpy as np
import pytest

import xdev


def one(i, a, x, out):
    out[i] = a * x[i]


def two(i, j, x, out):
    out[i, j] = x[j, i]


def three(i, j, k, x, out):
    out[i, j, k] += x[i, j, k]


def test_one_to_three_indices(gpu, made):  # noqa: ARG001
    x, out = gpu.sample(1000, "f"), np.zeros(1000, "f")
    xdev.kernel(one)[1000](0.5, gpu.array(x[::-1]), gpu.array(out))
    np.testing.assert_array_equal(out, x[::-1] * np.float32(0.5))
    assert gpu.shape == ((4, 1, 1), (256, 1, 1))

    x, out = gpu.sample((70, 90), "d"), np.zeros((90, 70))
    xdev.kernel(two)[90, 70](gpu.array(x), gpu.array(out))
    np.testing.assert_array_equal(out, x.T)
    assert gpu.shape == ((3, 12, 1), (32, 8, 1))

    out = np.zeros((5, 2, 3))
    key = (5, 2, 3), (1, 1, 4)
    xdev.kernel(three)[key](gpu.array(out + 1), gpu.array(out))
    np.testing.assert_array_equal(out, np.ones_like(out))
    assert gpu.shape == ((1, 2, 5), (4, 1, 1))


#: Lengths and strides, and whether 32 bits hold them.
SIZES = [
    *((2**31 - 1, 0, True), (2**31, 0, False)),
    *((1, -(2**31), True), (1, -(2**31) - 8, False)),
]


def test_grids_of_31_bits_with_a_thread_for_each_point_are_narrow(gpu, made):
    @xdev.kernel
    def first(i, j, x, out):
        out[i, j] += x.shape[0]

    out, one = gpu.array(whole := np.zeros((65_536, 1), "l")), gpu.array(np.zeros(1))
    first[65_535, 1](one, out)
    first[(65_535, 1), (1, 1)](one, out)
    first[(65_536, 1), (1, 1)](one, out)
    assert [kernel.narrow for kernel in made] == [True, False]
    assert whole.ravel().tolist() == [3] * 65_535 + [1]
    for length, stride, narrow in SIZES:
        made.clear()
        kernel = xdev.kernel(first.function)
        kernel[1, 1](type(one)((length,), "d", one.data, (stride,)), out)
        assert [kernel.narrow for kernel in made] == [narrow]


EACH, STEP = np.s_[:], np.s_[::2]
LAUNCHES = [
    *(("f", EACH, 2.0), ("d", EACH, 2.0), ("f", np.s_[::-1], -0.0), ("f", STEP, 2.5)),
    *(("f", EACH, 3.5), ("f", EACH, 2), ("l", EACH, 2), ("f", EACH, np.float64(0.1))),
    *(("f", np.s_[1:], 2.0), ("l", EACH, -(2**40))),
]


def test_calls_of_types_and_layouts_as_before_are_only_launches(gpu, made, only_quick):
    kernel, given = xdev.kernel(one), []
    for turn in range(2):
        if turn:
            only_quick()
        for dtype, view, value in LAUNCHES:
            x, out = gpu.sample(2000, dtype, seed=turn), np.zeros(900, "d")
            before = gpu.launches
            given.append(gpu.array(x)[view][:900])
            kernel[900](value, given[-1], gpu.array(out))
            np.testing.assert_array_equal(out, np.asarray(value * x[view][:900], "d"))
            assert gpu.launches == before + 1
    assert len(made) == 6  # by types alone; a view has no other kernel than a copy
    host = np.zeros(900)
    kernel[900](2.0, x, host)  # arrays of the host in turn
    np.testing.assert_array_equal(host, 2.0 * x[:900])


def test_what_does_not_fit_launches_nothing(gpu, made):
    kernel, raw = xdev.kernel(one), np.zeros(32, "b")
    start = -raw.ctypes.data % 8
    right, wrong = (gpu.array(raw[start + k :][:16].view("l")) for k in range(2))
    kernel[2](5, right, right)
    before = gpu.launches

    with pytest.raises(OverflowError):
        kernel[2](2**63, right, right)
    with pytest.raises(ValueError, match="out is not aligned"):
        kernel[2](5, right, wrong)
    for _ in range(2):  # no points are no launch
        kernel[0](5, right, right)

    assert gpu.launches == before
    assert len(made) == 1


# Generalized ufuncs: a point for each loop index.


@xdev.guvectorize("(m,n),(n)->(m),()")
def product(a, x, out, top):
    top[0] = x[0]
    for i in range(a.shape[0]):
        out[i] = 0
        for k in range(a.shape[1]):
            out[i] += a[i, k] * x[k]
            top[0] = max(top[0], x[k])


SHAPES = [((3, 4), (4,)), ((0, 3, 4), (4,)), ((2, 1, 3, 3, 4), (1, 7, 1, 4))]


@pytest.mark.usefixtures("made")
@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize(("left", "right"), SHAPES, ids=str)
def test_loop_dimensions_strides_and_outputs(gpu, left, right, order):
    a, x = (np.asarray(gpu.sample(s, "f"), order=order) for s in (left, right))
    before = gpu.launches

    made, top = map(gpu.host, product(gpu.array(a), gpu.array(x)))

    expected = np.matvec(a, x)
    assert gpu.launches == before + bool(expected.size)
    np.testing.assert_array_equal(made, expected)
    np.testing.assert_array_equal(top, np.broadcast_to(x.max(-1), made.shape[:-1]))
    whole = np.full((2, *expected.shape), 9, "f")
    product(gpu.array(a), gpu.array(x), out=(gpu.array(whole[1]), None))
    np.testing.assert_array_equal(whole, [np.full_like(expected, 9), expected])
