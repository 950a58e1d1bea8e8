"""What kernels and generalized ufuncs launch on CUDA, run on the host instead.

All is real but the driver and the kernels' machine code: their functions, compiled for
the host, read the same parameter. The fixture ``made`` lists those that are loaded.
"""

import numpy as np
import pytest
from running import dot

import xdev


def one(i, a, x, out):
    out[i] = a * x[i]


def two(i, j, x, out):
    out[i, j] = x[j, i]


def three(i, j, k, x, out):
    out[i, j, k] += x[i, j, k]


def fill(i, value, out):
    out[i] = value


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


@pytest.mark.parametrize(
    ("extents", "narrow"),
    [(((65_535, 1), (1, 1)), True), (((65_536, 1), (1, 1)), False)],
)
def test_only_grids_with_a_thread_for_each_point_are_narrow(gpu, made, extents, narrow):
    @xdev.kernel
    def mark(i, j, out):
        out[i, j] += 1

    mark[extents](gpu.array(out := np.zeros((65_536, 1), "b")))

    assert [kernel.narrow for kernel in made] == [narrow]
    assert out.sum() == mark[extents].extents.size


@pytest.mark.parametrize(
    ("shape", "strides", "narrow"),
    [
        ((2**31 - 1,), (0,), True),
        ((2**31,), (0,), False),
        ((1, 1), (2**31, 8), False),
        ((1,), (-(2**31),), True),
        ((1,), (-(2**31) - 8,), False),
    ],
)
def test_sizes_beyond_31_bits_are_wide(gpu, made, shape, strides, narrow):
    @xdev.kernel
    def first(i, x, out):
        out[i] = x.shape[0]

    one, out = gpu.array(np.zeros(1)), np.zeros(1, "l")
    first[1](type(one)(shape, "d", one.data, strides), gpu.array(out))

    assert [kernel.narrow for kernel in made] == [narrow]
    assert out.tolist() == [shape[0]]


def test_a_call_like_one_before_is_only_a_launch(gpu, made, only_quick):
    kernel = xdev.kernel(one)
    x, out = gpu.sample(10, "f"), np.zeros(10, "f")
    given, into = gpu.array(x), gpu.array(out)
    kernel[10](2.0, given, into)
    only_quick()
    before = gpu.launches

    kernel[10](3.0, given, into)

    np.testing.assert_array_equal(out, 3 * x)
    assert gpu.launches == before + 1
    host = np.zeros(10, "f")
    kernel[10](4.0, x, host)  # arrays of the host in turn
    np.testing.assert_array_equal(host, 4 * x)
    y, out = gpu.sample(10, "f", seed=1), np.zeros(10, "f")
    kernel[(10,)]  # the same points, by another name: known by its own
    kernel[10](0.5, gpu.array(y), gpu.array(out))
    np.testing.assert_array_equal(out, y / 2)
    assert len(made) == 1


@pytest.mark.parametrize(
    ("first", "second", "dtype"),
    [
        (1, -(2**62), "l"),
        (1.5, 2.5, "f"),
        (1.5, -0.0, "d"),
        (True, False, "?"),
        (1j, 2 - 1j, "F"),
        (np.float32(1.5), np.float32(0.1), "d"),
        (np.int32(7), np.int32(-7), "i"),
        (np.uint64(7), np.uint64(2**64 - 1), "L"),
    ],
)
def test_numbers_of_each_kind_change(gpu, made, only_quick, first, second, dtype):
    kernel, out = xdev.kernel(fill), np.zeros(3, dtype)
    into = gpu.array(out)
    kernel[3](first, into)
    assert out.tolist() == np.full(3, first).astype(dtype).tolist()
    only_quick()

    kernel[3](second, into)

    assert out.tolist() == np.full(3, second).astype(dtype).tolist()
    assert len(made) == 1


LAUNCHES = [
    *(("f", np.s_[:], 2.0), ("d", np.s_[:], 2.0), ("f", np.s_[::-1], 2.0)),
    *(("f", np.s_[::2], 2.0), ("f", np.s_[:], 2.0), ("f", np.s_[:], 2)),
    *(("f", np.s_[:], np.float64(0.1)), ("f", np.s_[1:], 2.0), ("l", np.s_[:], 2)),
]


def test_other_types_and_layouts_are_other_launches(gpu, made):
    kernel, whole = xdev.kernel(one), np.zeros(2001, "f")
    for dtype, view, value in LAUNCHES:
        x = gpu.sample(2000, dtype)
        given, out = gpu.array(x)[view][:900], np.zeros(900, "d")
        kernel[900](value, given, gpu.array(out))
        np.testing.assert_array_equal(out, np.asarray(value * x[view][:900], "d"))
    assert len(made) == 6  # by types alone; a view has no other kernel than a copy
    kernel[3](2.0, gpu.array(x.astype("f")), gpu.array(whole))
    assert whole[:3].tolist() == (2 * x[:3]).tolist()
    assert not whole[3:].any()


def test_an_array_off_its_alignment_is_refused_after_one_that_is_not(gpu, made):
    raw, kernel = np.zeros(32, "b"), xdev.kernel(fill)
    start = -raw.ctypes.data % 8
    right, wrong = (raw[start + k :][:16].view("d") for k in range(2))
    kernel[2](1.0, gpu.array(right))

    with pytest.raises(ValueError, match="out is not aligned"):
        kernel[2](1.0, gpu.array(wrong))
    assert len(made) == 1


def test_no_points_and_numbers_that_do_not_fit_launch_nothing(gpu, made):
    kernel, out = xdev.kernel(fill), np.zeros(3, "l")
    kernel[3](5, gpu.array(out))
    before = gpu.launches

    with pytest.raises(OverflowError):
        kernel[3](2**63, gpu.array(out))
    for _ in range(2):  # no points are no launch
        kernel[0](1, gpu.array(out))

    assert gpu.launches == before
    assert out.tolist() == [5, 5, 5]
    assert len(made) == 1


def test_more_arguments_than_a_launch_takes_are_refused(gpu, made):
    names = ", ".join(f"x{k}" for k in range(130))
    scope = {}
    exec(f"def wide(i, {names}):\n    x0[i] = 1\n", scope)  # noqa: S102
    x = gpu.array(np.zeros(3))

    with pytest.raises(
        TypeError, match=r"wide has too many arguments for CUDA: .* 4096"
    ):
        xdev.kernel(scope["wide"])[3](*[x] * 130)

    assert not made


# Generalized ufuncs: a point for each loop index.


@xdev.guvectorize("(m,n),(n)->(m)")
def product(a, x, out):
    for i in range(a.shape[0]):
        out[i] = 0
        for k in range(a.shape[1]):
            out[i] += a[i, k] * x[k]


@xdev.guvectorize("(n),()->(),(n)")
def both(x, factor, top, scaled):
    top[0] = x[0]
    for i in range(x.shape[0]):
        top[0] = max(top[0], x[i])
        scaled[i] = factor * x[i]


@pytest.fixture
def at_points(gpu, made):  # noqa: ARG001
    """Return what a generalized ufunc gives for arrays of the stand-in."""

    def there(x):
        return gpu.array(x) if isinstance(x, np.ndarray) else x

    def call(function, *args, out=None, **keywords):
        outs = None if out is None else tuple(map(there, out))
        found = function(*map(there, args), out=outs, **keywords)
        several = isinstance(found, tuple)
        return tuple(map(gpu.host, found)) if several else gpu.host(found)

    return call


@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize(
    ("left", "right"),
    [
        *(((3, 4), (4,)), ((5, 1, 3, 4), (6, 4)), ((0, 3, 4), (4,))),
        ((2, 1, 3, 3, 4), (1, 7, 1, 4)),
    ],
    ids=str,
)
def test_loop_dimensions_and_strides(gpu, at_points, left, right, order):
    a, x = (np.asarray(gpu.sample(s, "d"), order=order) for s in (left, right))
    np.testing.assert_array_equal(at_points(product, a, x), np.matvec(a, x))


def test_outputs_in_place_numbers_by_value_casts_and_overlap(gpu, at_points):
    x, whole = gpu.sample((6, 5), "f"), np.full((12, 5), 9, "f")

    top, scaled = at_points(both, x[:, ::-1], 0.5, out=(None, whole[::2]))

    np.testing.assert_array_equal(top, x.max(-1))
    np.testing.assert_array_equal(scaled, x[:, ::-1] / 2)
    np.testing.assert_array_equal(whole[::2], scaled)
    np.testing.assert_array_equal(whole[1::2], np.full((6, 5), 9))
    top, scaled = at_points(both, x, np.arange(6))
    assert top.dtype == np.float64
    np.testing.assert_array_equal(scaled, x * np.arange(6)[:, None])
    types = ["void(float64[:], float64, float64[:], float64[:])"]
    typed = xdev.guvectorize(types, "(n),()->(),(n)")(both)
    top, scaled = at_points(typed, x.astype("h"), np.int8(2))
    assert top.dtype == scaled.dtype == np.float64
    np.testing.assert_array_equal(scaled, 2.0 * x)
    expected = x / 2
    at_points(both, x, 0.5, out=(None, x[::-1, ::-1]))
    np.testing.assert_array_equal(x[::-1, ::-1], expected)


def test_axes_and_kept_dimensions(gpu, at_points):
    x, y = gpu.sample((4, 5, 6), "d"), gpu.sample((4, 5, 6), "d", 1)
    for keywords in (
        *({"axis": 1}, {"axis": 0, "keepdims": True}, {"keepdims": True}),
        {"axes": [0, 0, ()]},
    ):
        made = at_points(dot, x, y, **keywords)
        np.testing.assert_array_equal(made, np.vecdot(x, y, **keywords))
    out = np.zeros((4, 1, 6))
    at_points(dot, x, y, out=(out,), axis=1, keepdims=True)
    np.testing.assert_array_equal(out, np.vecdot(x, y, axis=1, keepdims=True))
    a, x, axes = (
        gpu.sample((3, 4, 5), "d"),
        gpu.sample((5, 4), "d"),
        [(0, 2), (0,), (0,)],
    )
    made = at_points(product, a, x, axes=axes)
    np.testing.assert_array_equal(made, np.matvec(a, x, axes=axes))
