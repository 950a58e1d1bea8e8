"""Elementwise calls by the CUDA templates, on a stand-in for a GPU."""

import ctypes
import importlib
import itertools
import sys
from contextlib import nullcontext
from types import SimpleNamespace

import ml_dtypes  # noqa: F401 - NumPy's name of bfloat16
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra.numpy import arrays, mutually_broadcastable_shapes
from stand_ins import Exporter

import xdev
from xdev import _optional, native
from xdev.device.streams import LiveStreams
from xdev.facade import cuda as facade_cuda, cuda_searching
from xdev.memory import arrays as memory_arrays
from xdev.memory.arrays import array_maker
from xdev.ufunc import cuda, foreign, layout


@pytest.mark.parametrize("char", [*"behfdFD", "bfloat16"])
def test_contiguous_and_misaligned_arrays_of_any_dtype(gpu, char):
    for n, (i, j, k) in itertools.product(
        (1, 15, 257, 1500), ((0, 0, 0), (1, 0, 0), (0, 3, 1), (2, 2, 2), (5, 1, 3))
    ):
        x, y, out = (gpu.sample(n + s, char, s)[s:] for s in (i, j, k))
        whole = out.base if out.base is not None else out
        before = whole[: len(whole) - n].copy()

        gpu.ufunc("add")(gpu.array(x), gpu.array(y), gpu.array(out))

        np.testing.assert_array_equal(out, x + y)
        np.testing.assert_array_equal(whole[: len(before)], before)


ROWS = {  # of two matrices what is added
    "row": lambda x, y: (x, y[0]),
    "column": lambda x, y: (x, y[:, :1]),
    "slice": lambda x, y: (x[:, 3:60], y[:, 3:60]),
    "odd": lambda x, y: (x[:, 1:], y[:, 1:]),
    "every other row": lambda x, y: (x[:35], y[::2]),
    "transposed": lambda x, y: (x, y.T),
    "every other column": lambda x, y: (x[:, ::2], y[:, ::2]),
    "backwards": lambda x, y: (x, y[::-1, ::-1]),
    "one": lambda x, y: (x, y[2:3, 2:3]),
}


@pytest.mark.parametrize("char", ["b", "f", "bfloat16"])
@pytest.mark.parametrize("views", ROWS.values(), ids=ROWS)
def test_rows_of_matrices_in_any_layout(gpu, views, char):
    x, y = views(*(gpu.sample((70, 70), char, seed) for seed in range(2)))
    wider = np.zeros((x.shape[0], x.shape[1] + 1), char)
    for out in (np.zeros(x.shape, char), wider[:, 1:]):
        for _ in range(2):  # the second time by the fast way
            out[...] = 0
            before = gpu.launches
            gpu.ufunc("add")(gpu.array(x), gpu.array(y), gpu.array(out))
            assert gpu.launches == before + 1
            np.testing.assert_array_equal(out, x + y)


@pytest.mark.parametrize("shift", [-139, -5, -1, 0, 1, 5, 139])
@pytest.mark.parametrize("steps", [(1, 1), (1, -1), (-1, 1), (-1, -1)])
def test_overlap_is_as_in_numpy_on_every_way(gpu, shift, steps):
    add = gpu.ufunc("add")
    for _ in range(3):
        ours, theirs = np.arange(500.0), np.arange(500.0)
        for memory, call in ((ours, add), (theirs, np.add)):
            x, out = memory[150:290], memory[150 + shift : 290 + shift]
            x, out = x[:: steps[0]], out[:: steps[1]]
            x, out = (x, out) if call is np.add else (gpu.array(x), gpu.array(out))
            call(x, 1.0, out)
        np.testing.assert_array_equal(ours, theirs)


def test_what_is_learnt_of_one_layout_serves_no_other_of_its_size(gpu):
    x, y = (gpu.sample((64, 128), "f", seed) for seed in range(2))
    cube, mask = x.reshape(4, 16, 128), gpu.sample((64, 128), "?")
    pairs = [
        *((x, y), (x, y[0]), (x[:1], y), (x.ravel(), y.ravel()), (x, y[:1, :1])),
        *((x.T, y.T.copy()), (cube[:, ::2], cube[:, 1::2]), (x, 2.0)),
    ]
    for order in itertools.permutations(range(len(pairs)), 2):
        add = gpu.ufunc("add")
        for a, b in [pairs[i] for i in order * 2]:
            there = [gpu.array(v) if isinstance(v, np.ndarray) else v for v in (a, b)]
            np.testing.assert_array_equal(gpu.host(add(*there)), a + b)
            out = np.zeros((a + b).shape, "f")
            add(*there, gpu.array(out))
            np.testing.assert_array_equal(out, a + b)
            if out.shape == mask.shape:
                out[...] = 7
                add(*there, out=gpu.array(out), where=gpu.array(mask))
                np.testing.assert_array_equal(out, np.where(mask, a + b, 7))


@st.composite
def operands(draw):
    """Return a shape, two views of any strides that broadcast to it, and a mask."""
    shapes = draw(mutually_broadcastable_shapes(num_shapes=2, max_dims=3, max_side=4))
    found = []
    for shape in shapes.input_shapes:
        order = draw(st.permutations(range(len(shape))))
        steps = [draw(st.sampled_from([1, 1, 2, -1])) for _ in shape]
        room = [shape[axis] * abs(steps[axis]) for axis in order]
        base = draw(arrays(np.int32, room, elements=st.integers(-100, 100)))
        view = base.transpose(np.argsort(order).astype(int)) if shape else base
        found.append(view[(..., *(slice(None, None, step) for step in steps))])
    return shapes.result_shape, found, draw(arrays(np.bool_, shapes.result_shape))


@settings(max_examples=40)
@given(case=operands(), order=st.sampled_from("CF"))
def test_any_layout_equals_numpy(gpu, case, order):
    shape, (x, y), mask = case
    a, b, add = gpu.array(x), gpu.array(y), gpu.ufunc("add")
    expected = np.add(x, y)
    before = gpu.launches

    made = add(a, b)

    assert gpu.launches - before == bool(expected.size)
    np.testing.assert_array_equal(gpu.host(made), expected, strict=True)
    if min(shape, default=2) > 1:
        assert made.strides == expected.strides
    for where in (True, mask):
        out = np.full(shape, 99, np.int32, order)[
            (..., *[slice(None, None, -1)][: len(shape)])
        ]
        there, own = gpu.array(out), np.full(shape, 99, np.int32)
        chosen = {} if where is True else {"where": gpu.array(mask)}
        assert add(a, b, out=there, **chosen) is there
        np.testing.assert_array_equal(out, np.add(x, y, out=own, where=where))


def test_a_foreign_array_is_read_and_written_in_place(gpu):
    x, out = np.arange(6.0).reshape(2, 3)[:, ::-1], np.zeros((3, 2)).T
    exporter, add = Exporter(out), gpu.ufunc("add")

    assert add(Exporter(x), Exporter(x), out=exporter) is exporter

    np.testing.assert_array_equal(out, x + x)
    assert type(add(Exporter(x), 1.0)) is _optional.cupy().ndarray


@pytest.mark.parametrize("there", [0, 1])
def test_empty_arrays_without_memory_go_with_those_of_any_device(gpu, there):
    add, nothing = gpu.ufunc("add"), np.empty((0, 3), np.float32)
    for address in (0, 64):  # of no device, as the driver says
        empty = Exporter(nothing, address=address)
        with gpu.devices(2) as devices:
            devices.current = 1 - there
            for one, other in ((empty, empty), (empty, gpu.array(nothing, there))):
                assert add(one, other).shape == (0, 3)
                assert add(one, other, out=empty) is empty
            assert add(empty, gpu.array(X[:1], there)).shape == (0, 3)
            assert devices.current == 1 - there


X = np.zeros((2, 3), np.float32)


@pytest.mark.parametrize("address", [0, 64])
def test_elements_in_memory_of_no_device_are_refused_with_several(gpu, address):
    add = gpu.ufunc("add")
    with gpu.devices(2), pytest.raises(ValueError, match=r"\(2, 3\).*no CUDA device"):
        add(gpu.array(X, 0), Exporter(X, address=address))


@pytest.mark.parametrize(
    ("args", "keywords", "error", "text"),
    [
        ((X, X[0, :2]), {}, ValueError, r"\(2, 3\) \(2,\)"),
        ((X, X), {"where": np.ones((2, 3))}, TypeError, "where must be bool"),
        ((X, X), {"dtype": "S3"}, TypeError, "not supported"),
        ((X, X), {"out": Exporter(X, writable=False)}, ValueError, "read-only"),
        ((X, X), {"out": Exporter(X, mask=Exporter(X))}, TypeError, "where="),
        ((X, X), {"out": Exporter(X.astype(">f4"))}, TypeError, "byte order"),
        (
            *((X, X), {"out": Exporter(np.ndarray((2, 3), "f4", bytearray(30), 1))}),
            *(ValueError, "aligned"),
        ),
    ],
)
def test_bad_input_is_refused_before_anything_is_written(
    gpu, args, keywords, error, text
):
    def moved(x):
        return gpu.array(x) if isinstance(x, np.ndarray) else x

    before = gpu.launches
    with pytest.raises(error, match=text):
        gpu.ufunc("add")(
            *map(moved, args), **{k: moved(v) for k, v in keywords.items()}
        )
    assert gpu.launches == before


def frames_of(call):
    """Return how many functions of ours in Python a call runs."""
    count, ours = 0, xdev.__file__.removesuffix("__init__.py")

    def note(frame, event, _):
        nonlocal count
        count += event == "call" and frame.f_code.co_filename.startswith(ours)

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.usefixtures("cupy_library", "silent")
@pytest.mark.parametrize("streams", [1, 2])
@pytest.mark.parametrize("count", [1, 2])
def test_a_call_like_one_before_is_one_launch(gpu, count, streams):
    """It asks the driver for nothing else but the current device, where there are two.

    Of several streams, the arrays in blocks of others are marked, by their addresses:
    the compiled tier knows which.
    """
    x, y, o = (gpu.sample(1000, "f", seed) for seed in range(3))
    mask = x > 4
    a, b, m, out = map(gpu.array, (x, y, mask, o))
    other, numbas = gpu.array(x.copy()), [numba_array(v) for v in (x, y, o.copy())]
    f, total = gpu.ufunc("add"), gpu.ufunc("add", 0)
    calls = {  # each with the frames of Python that it takes, at most
        "f(x, y, out=o)": (lambda: f(a, b, out=out), x + y, 0),
        "f(x, y)": (lambda: f(a, b), x + y, 0),
        "add": (lambda: xdev.add(a, b), x + y, 0),
        "sin": (lambda: xdev.sin(other), np.sin(x), 0),
        "clip": (lambda: xdev.clip(a, 2.0, 5.0), x.clip(2, 5), 1),
        "where": (lambda: xdev.where(m, a, b), np.where(mask, x, y), 1),
        "reduce": (lambda: total.reduce(a), x.sum(), 9),
        "Numba's": (lambda: f(*numbas[:2], out=numbas[2]), x + y, 99),
    }
    others = {"sin": other, "Numba's": numbas[2]}  # in blocks of another stream
    addresses = {other.data.ptr, numbas[2].device_ctypes_pointer.value}
    kind = ctypes.PYFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 2)
    of_stream = kind(lambda address, _: address not in addresses)
    address = ctypes.cast(of_stream, ctypes.c_void_p).value
    with gpu.devices(count, address) as driver:
        native.calls.use_several_streams(streams > 1)
        try:
            for name, (call, expected, frames) in calls.items():
                for _ in range(2):
                    result = call()
                result = numbas[2].gpu_data.x if name == "Numba's" else gpu.host(result)
                np.testing.assert_allclose(result, expected, rtol=1e-6)
                before = gpu.launches
                del driver.asked[:], driver.marked[:]
                taken = frames_of(call)
                assert gpu.launches == before + 1, name
                looks = ["attributes"] * 3 if name == "Numba's" and count > 1 else []
                assert driver.asked == looks + ["get"] * (count > 1), name
                marked = [*itertools.chain(*driver.marked)]
                assert {*map(memory_arrays.device_chunk, marked)} <= {None}
                if native.STATE == "compiled":
                    assert taken <= frames, name
                    strange = [others[name]] if name in others and streams > 1 else []
                    assert [*map(id, marked)] == [*map(id, strange)]
                else:
                    assert bool(marked) == (streams > 1)
        finally:
            native.calls.use_several_streams(False)


@pytest.mark.usefixtures("cupy_library")
def test_results_are_on_the_device_of_the_arrays_whichever_is_current(gpu):
    x, mask = gpu.sample(9, "f"), gpu.sample(9, "?")
    calls = (
        lambda x, _: xdev.add(x, 2.0),
        lambda x, _: xdev.clip(x, 1.0, 5.0),
        lambda x, m: xdev.where(m, x, x),
    )
    with gpu.devices(2) as devices:
        for call, k, current in itertools.product(calls, (0, 1), (0, 1)):
            operands = gpu.array(x, k), gpu.array(mask, k)
            devices.current = k
            call(*operands)
            devices.current = current
            made = call(*operands)
            assert (made.data.device_id, devices.current) == (k, current)


def every_block(gpu, mark):
    """Connect as if each block were of the stream that is asked for."""
    own = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 2)(lambda *_: 1)
    gpu.connect(array_maker(), mark, ctypes.cast(own, ctypes.c_void_p).value)
    return own


def test_a_list_in_itself_is_no_endless_sequence_of_arrays(gpu, monkeypatch):
    monkeypatch.setattr(memory_arrays, "live_streams", live := LiveStreams())
    live.several = True
    stream = SimpleNamespace(ptr=7)
    used, endless = every_block(gpu, print), []
    endless.append(endless)
    try:
        with pytest.raises(RecursionError):
            memory_arrays.mark_uses(endless, stream=stream)
        assert not native.calls.are_of_current_stream(endless)
    finally:
        gpu.connect(array_maker())
        del used


def numba_array(x, stream=0):
    if not _optional.installed("numba_cuda"):
        pytest.skip("needs numba-cuda: the group cuda")
    _optional.numba_cuda()
    arrays = importlib.import_module("numba.cuda.cudadrv.devicearray")
    address = x.__array_interface__["data"][0]
    memory = SimpleNamespace(device_ctypes_pointer=ctypes.c_void_p(address), x=x)
    return arrays.DeviceNDArray(x.shape, x.strides, x.dtype, stream, memory)


@pytest.fixture
def silent(monkeypatch):
    """Make the interface of Numba's arrays fail: it takes them long."""

    def asked(_):
        pytest.fail("asked for the interface")

    monkeypatch.setattr(
        type(numba_array(np.zeros(1))), "__cuda_array_interface__", property(asked)
    )


@pytest.mark.usefixtures("silent")
@pytest.mark.parametrize("view", [np.s_[:, :], np.s_[::2, 1:]], ids=str)
def test_numba_arrays_are_read_by_their_attributes(gpu, monkeypatch, view):
    add, out = xdev.vectorize(gpu.functions["add"]), np.zeros((30, 40), "f")[view]
    target = numba_array(out)

    def lift(made, like):
        return numba_array(gpu.host(made)) if type(like) is type(target) else made

    for module in (foreign, cuda.foreign):
        monkeypatch.setattr(module, "from_native", lift)
    for seed in range(3):  # from the second time by the fast way
        x, y = (gpu.sample((30, 40), "f", seed + k)[view] for k in range(2))
        first = numba_array(x)
        for second in (numba_array(y), gpu.array(y)):
            out[...] = 0
            before = gpu.launches
            assert add(first, second, target) is target
            assert gpu.launches == before + 1
            np.testing.assert_array_equal(out, x + y)
            made = add(first, second)
            assert type(made) is type(add(2.0, first)) is type(target)
            np.testing.assert_array_equal(made.gpu_data.x, x + y)
        assert type(add(gpu.array(x), first)) is not type(target)
        assert add(1.5, 2.5, out=target) is target
        assert (out == 4).all()


@pytest.mark.usefixtures("silent")
def test_numba_arrays_on_streams_are_ordered_every_time(gpu, monkeypatch):
    add, ordered = xdev.vectorize(gpu.functions["add"]), []

    def seen(arrays):
        ordered.append({x.stream for x in arrays})
        return nullcontext(0)

    monkeypatch.setattr(cuda.cuda_operands, "ordered", seen)
    out = np.zeros(20)
    for handle, times in ((0, 1), (1, 0), (77, 2)):  # the null stream has two names
        bound = type("Bound", (), {"__int__": lambda _, handle=handle: handle})
        x = numba_array(np.ones(20), bound())
        ordered.clear()
        for _ in range(2):
            add(x, x, numba_array(out))
        assert len(ordered) == times
        assert (out == 2).all()
    assert ordered == [{77, None}] * 2


@pytest.mark.usefixtures("silent")
@pytest.mark.parametrize("dtype", [">f4", "f4"])
def test_numba_arrays_that_a_kernel_cannot_read_are_refused(gpu, dtype):
    add = xdev.vectorize(gpu.functions["add"])
    memory = np.zeros(42, "b")
    right = numba_array(np.zeros(10, "f"))
    wrong = numba_array(memory[1:41].view(dtype))
    for args in ((wrong, right, right), (right, right, wrong)):
        for _ in range(2):
            with pytest.raises((TypeError, ValueError), match=r"order|aligned"):
                add(*args)


@pytest.mark.parametrize("dtype", [">f8", ">i2", "<c8", "?"])
def test_a_number_on_cuda_has_the_machines_byte_order(gpu, dtype):
    number = np.ones((), dtype)
    made = facade_cuda.CudaFactory(0).asarray(number, None, None)

    assert gpu.host(made) == 1
    assert made.dtype == number.dtype.newbyteorder("=")


@given(st.integers(1, 2**31 - 1), st.integers(0, 2**31 - 1))
def test_division_by_multiplication_is_exact(extent, i):
    magic, shift = layout.divisor(extent)

    assert 0 < magic < 2**32
    assert (i * magic >> 32) + i >> shift == i // extent
    assert (i * magic >> 32) + i < 2**32


@pytest.mark.parametrize("char", "if")
def test_places_where_runs_begin(gpu, monkeypatch, char):
    monkeypatch.setattr(cuda_searching, "last", lambda x: int(gpu.host(x)[-1]))
    x = gpu.sample(9000, char)
    by = np.argsort(x, stable=True)
    starts = np.r_[True, x[by][1:] != x[by][:-1]]
    count, write = cuda_searching._marks(gpu.array(x[by]), True)
    values, first = gpu.array(x[:count].copy()), gpu.array(np.zeros(count, "q"))
    inverse = gpu.array(np.zeros(9000, "q"))
    write("VALUE", values)
    write("NUMBER", first, gpu.array(by), inverse)
    np.testing.assert_array_equal(gpu.host(values), np.unique(x), strict=True)
    np.testing.assert_array_equal(gpu.host(first), np.flatnonzero(starts))
    np.testing.assert_array_equal(gpu.host(inverse)[by], np.cumsum(starts) - 1)
