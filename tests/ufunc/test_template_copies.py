"""Copies of the facade by the CUDA templates, on a stand-in for a GPU."""

import itertools

import numpy as np
import pytest
from hypothesis import given, strategies as st

import xdev
from xdev import linalg, native
from xdev.facade import dispatch, manipulation, searching

pytestmark = pytest.mark.usefixtures("cupy_library")

VIEWS = [
    lambda x: x,
    lambda x: x.T,
    lambda x: x[::2, ::-1],
    lambda x: x[1:, 1:],
    lambda x: np.broadcast_to(x[:1], x.shape),
]
AXES = range(-2, 2)
CASES = [
    *(("concat", (), {"axis": axis}) for axis in (*AXES, None)),
    *(("stack", (), {"axis": axis}) for axis in (*AXES, 2, -3)),
    *((name, (), {"k": k}) for name in ("tril", "triu") for k in (0, 2, -9, 99)),
    *(
        ("repeat", (k,), {"axis": axis})
        for k, axis in itertools.product((0, 3, 99), (*AXES, None))
    ),
    *(
        ("roll", (shift,), {"axis": axis})
        for shift, axis in itertools.product((0, 1, -3, 10**9 + 7), (*AXES, None))
    ),
    *(("tile", (times,), {}) for times in ((2,), (2, 3), (1, 2, 1, 2), (0, 1), ())),
    *(
        ("cumulative_sum", (), {"axis": axis, "dtype": dtype})
        for axis, dtype in itertools.product(AXES, (None, "d"))
    ),
]
SEQUENCES = "concat", "stack"
JOINS = xdev.concat, xdev.stack


@pytest.mark.usefixtures("sizes")
@pytest.mark.parametrize("char", "?He")
def test_elements_go_where_numpy_has_them(gpu, char):
    whole = gpu.sample((7, 50), char) % np.dtype(char).type(2)
    for view, (name, more, options) in itertools.product(VIEWS, CASES):
        x = view(whole)
        if char == "?" and options.get("dtype"):
            continue  # the stand-in for addition has no cast
        there = gpu.array(x)
        if name in SEQUENCES:
            x, there = [x, x], [there, there]
        expected = getattr(np, name)(x, *more, **options)
        for _ in range(2):  # the second time by what the first one planned
            made = getattr(xdev, name)(there, *more, **options)
            if made is not NotImplemented:  # else it is small, and many launches
                np.testing.assert_array_equal(gpu.host(made), expected, strict=True)


@pytest.mark.usefixtures("sizes")
@pytest.mark.parametrize("sizes", [-1000], indirect=True)
@pytest.mark.parametrize("char", "bhfdD")
def test_axes_in_another_order_are_copied_in_cs(gpu, char):
    for shape in ((70, 131), (1, 64), (3, 1, 65), (2, 33, 5), (2, 3, 4, 70)):
        whole = gpu.sample(shape, char)
        there = gpu.array(whole)
        for order in itertools.permutations(range(len(shape))):
            for part in (slice(None), slice(1, None), slice(None, None, -2)):
                x = whole.transpose(order)[part]
                out = xdev.reshape(there.transpose(order)[part], (-1,))
                if x.flags.c_contiguous or not x.size:
                    continue
                np.testing.assert_array_equal(gpu.host(out), x.reshape(-1), strict=True)


@pytest.mark.usefixtures("sizes")
@pytest.mark.parametrize("sizes", [-1000], indirect=True)
def test_a_shape_that_needs_no_copy_is_a_view(gpu):
    x = gpu.array(gpu.sample((600, 700), "f"))
    out = xdev.reshape(x.T, (7, 100, 600))
    assert out.data.ptr == x.data.ptr
    with pytest.raises(ValueError, match="reshape"):
        xdev.reshape(x.T, (7, 7))


def test_one_element_without_an_axis(gpu):
    x = np.array(2.5)
    there = gpu.array(x)
    for out, expected in (
        (xdev.roll(there, 1), np.roll(x, 1)),
        (xdev.repeat(there, 3), np.repeat(x, 3)),
        (xdev.stack([there, there]), np.stack([x, x])),
        (xdev.concat([there, there], axis=None), np.concatenate([x, x], None)),
    ):
        np.testing.assert_array_equal(gpu.host(out), expected, strict=True)


def test_lines_are_repeated_by_one_launch(gpu):
    x, launches = gpu.sample(50, "f"), gpu.launches
    made = xdev.tile(gpu.array(x), (3,)), xdev.repeat(gpu.array(x), 3)
    assert gpu.launches == launches + 2
    for one, expected in zip(made, (np.tile(x, 3), np.repeat(x, 3)), strict=True):
        np.testing.assert_array_equal(gpu.host(one), expected, strict=True)


def test_a_diagonal_may_be_as_far_as_one_likes(gpu):
    x = np.arange(24.0).reshape(2, 3, 4)
    for k in (10**30, -(10**30)):
        lower, upper = (f(gpu.array(x), k=k) for f in (xdev.tril, xdev.triu))
        np.testing.assert_array_equal(gpu.host(lower), x * (k > 0))
        np.testing.assert_array_equal(gpu.host(upper), x * (k < 0))


@pytest.mark.parametrize("axes", [None, 0, -1, (0, 1), [1], (1, 1), ()])
def test_halves_are_exchanged(gpu, axes):
    x = gpu.sample((5, 6), "F")
    for name in ("fftshift", "ifftshift"):
        made = getattr(xdev.fft, name)(gpu.array(x), axes=axes)
        if axes == ():
            assert made is NotImplemented
        else:
            expected = getattr(np.fft, name)(x, axes=axes)
            np.testing.assert_array_equal(gpu.host(made), expected, strict=True)


@pytest.mark.parametrize("char", "fdFD")
def test_triangles_of_complex_numbers_that_begin_at_any_real_one(gpu, char):
    dtype = np.dtype(char)
    memory = np.arange(9 * dtype.itemsize + 32, dtype=np.uint8)
    start = -memory.ctypes.data % 16
    for shift in (0, 4, 8, 16):
        x = memory[start + shift :][: 9 * dtype.itemsize].view(char).reshape(3, 3)
        made = xdev.tril(gpu.array(x))
        np.testing.assert_array_equal(gpu.host(made), np.tril(x), strict=True)


@given(st.data())
def test_parts_of_any_size_are_joined_by_one_launch(gpu, data):
    axis = data.draw(st.integers(0, 2))
    sizes = data.draw(st.lists(st.integers(0, 9), min_size=1, max_size=15))
    arrays = [gpu.sample((3, n, 2) if axis == 1 else (n, 3, 2), "h", n) for n in sizes]
    if axis == 2:
        arrays = [x.reshape(3, 2, -1) for x in arrays]
    launches = gpu.launches
    joined = xdev.concat([gpu.array(x) for x in arrays], axis=axis)
    if not any(sizes):
        assert joined is NotImplemented
        return
    expected = np.concat(arrays, axis=axis)
    np.testing.assert_array_equal(gpu.host(joined), expected, strict=True)
    assert gpu.launches == launches + 1


def test_what_is_no_copy_is_left_to_cupy(gpu):
    def new(*shape):
        return gpu.array(np.zeros(shape))

    for made in (
        xdev.concat([new(6, 5), new(6)], axis=1),
        xdev.stack([new(3), new(4)]),
        xdev.repeat(new(3), -1, axis=0),
        xdev.tile(new(3, 3), (-1, -1)),
        xdev.roll(new(3), 1, axis=2),
        xdev.tril(new(3)),
        xdev.cumulative_sum(new(3, 3)),
        xdev.cumulative_sum(new(3), include_initial=True),
    ):
        assert made is NotImplemented
    for parts in ([new(6), new()], [new(), new()]):
        with pytest.raises(ValueError, match=r"xdev\.stack"):
            xdev.concat(parts, axis=0)


@pytest.mark.parametrize("to", "?bHlfD")
@pytest.mark.parametrize("char", "?hLfd")
def test_casts_are_planned_whatever_they_lose(gpu, char, to):
    for shape in ((7,), (50,), (3, 5)):
        x = gpu.sample(shape, char)
        expected, launches = x.astype(to), gpu.launches
        made = xdev.astype(gpu.array(x), np.dtype(to))
        if char != to and "?" in (char, to):
            assert made is NotImplemented
            continue
        np.testing.assert_array_equal(gpu.host(made), expected, strict=True)
        assert gpu.launches == launches + 1
        assert xdev.astype(gpu.array(x.T[::2]), np.dtype(to)) is NotImplemented


@pytest.mark.parametrize("char", "fdlq")
def test_neighbours_are_subtracted_by_one_launch(gpu, char):
    for shape in ((9,), (4, 5, 3), (1, 4)):
        x = gpu.sample(shape, char)
        for view, axis in itertools.product((x, x.T, x[::2]), range(-x.ndim, x.ndim)):
            launches, expected = gpu.launches, np.diff(view, axis=axis)
            made = xdev.diff(gpu.array(view), axis=axis)
            np.testing.assert_array_equal(gpu.host(made), expected, strict=True)
            assert gpu.launches == launches + (expected.size > 0)


@pytest.mark.parametrize("view", VIEWS)
def test_an_axis_of_one_element_is_a_view(gpu, view):
    x = view(gpu.sample((6, 8), "f"))
    there, launches = gpu.array(x), gpu.launches
    for axis in range(-3, 3):
        made, expected = xdev.expand_dims(there, axis), np.expand_dims(x, axis)
        np.testing.assert_array_equal(gpu.host(made), expected, strict=True)
        assert made.data.ptr == there.data.ptr
    for axis in (3, -4, (0, 3, 3)):
        with pytest.raises(ValueError, match="axis"):
            xdev.expand_dims(there, axis)
    assert xdev.expand_dims(there, (0, 2)).shape == (1, x.shape[0], 1, x.shape[1])
    assert gpu.launches == launches


def test_views_are_broadcast(gpu):
    xs = gpu.sample((3, 1), "f"), gpu.sample(4, "d"), gpu.sample((), "l")
    made = xdev.broadcast_arrays(*map(gpu.array, xs))
    for one, expected in zip(made, np.broadcast_arrays(*xs), strict=True):
        np.testing.assert_array_equal(gpu.host(one), expected, strict=True)
    with pytest.raises(ValueError, match="shape"):
        xdev.broadcast_arrays(gpu.array(np.ones(2)), gpu.array(np.ones(3)))


def test_parts_of_complex_numbers_are_views(gpu):
    for char in "fdFD":
        x = gpu.sample((3, 4), char)
        for name in ("real", "imag") if char in "FD" else ("real",):
            for view in (x, x.T, x[::2]):
                made = getattr(xdev, name)(gpu.array(view))
                expected = getattr(np, name)(view)
                np.testing.assert_array_equal(gpu.host(made), expected, strict=True)
    with pytest.raises(TypeError, match="keyword"):
        xdev.real(gpu.array(x), axis=0)


def test_a_call_like_one_before_does_not_ask_where_it_goes(gpu, monkeypatch):
    x, y = (gpu.array(gpu.sample((4, 3), "d", seed)) for seed in (1, 2))
    flat, places = gpu.array(np.arange(5.0)), gpu.array(np.array([3, -1]))
    calls = [
        *(lambda f=f: f(x, k=1) for f in (xdev.tril, xdev.triu)),
        *(lambda f=f, a=a: f([x, y], axis=a) for f in JOINS for a in (0, 1, -1)),
        *(lambda a=a: xdev.take(x, places, axis=a) for a in (0, 1)),
        lambda: xdev.take(flat, places),
        *(lambda s=s: xdev.searchsorted(flat, flat, side=s) for s in ("left", "right")),
        lambda: xdev.linalg.cross(x, y),
    ]
    before = [gpu.host(call()) for call in calls]
    for module in (manipulation, searching, linalg):
        for name in ("dispatch", "dispatch_two", "dispatch_sequence"):
            monkeypatch.setattr(module, name, None, raising=False)
    for call, expected in zip(calls, before, strict=True):
        np.testing.assert_array_equal(gpu.host(call()), expected, strict=True)
    for other in (
        *(lambda k=k: xdev.tril(x, k=k) for k in (2, 1.0, True, [1])),
        *(lambda a=a: xdev.concat(a, axis=0) for a in ([], [x], [x, 2.0], [x, flat])),
        lambda: xdev.concat([x, y], axis=False),
        lambda: xdev.linalg.cross(x, y, 1),
    ):  # goes the general way
        with pytest.raises(TypeError, match="NoneType"):
            other()


def test_a_launch_at_once_is_on_its_arrays_device_and_marks_them(gpu):
    x = gpu.sample((3, 4), "f")
    with gpu.devices(2) as devices:
        there, elsewhere = gpu.array(x, 1), gpu.array(x, 0)
        with devices.using(1):
            xdev.tril(there)
        devices.asked.clear()
        made = dispatch.relaunch("tril", 0, there)
        assert devices.asked[-2:] == ["set", "set"]
        assert (made.data.device_id, devices.current) == (1, 0)
        np.testing.assert_array_equal(gpu.host(made), np.tril(x), strict=True)
        assert dispatch.relaunch("tril", 0, elsewhere) is None
        native.calls.use_several_streams()
        try:
            dispatch.relaunch("tril", 0, there)
        finally:
            native.calls.use_several_streams(False)
        assert [id(x) for marked in devices.marked for x in marked] == [id(there)]
