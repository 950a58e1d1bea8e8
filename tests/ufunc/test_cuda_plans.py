"""CUDA calls without a GPU: an interpreter on host memory runs what would be launched.

So broadcasting, strides, overlap, casts and the layout of the parameters are the real
ones.
"""

import numpy as np
import pytest
from cuda_interpreter import (
    Interpreter,
    cupy,
    host_copy,
    host_memory,
    on_device,
    to_host,
)
from hypothesis import given, settings, strategies as st
from hypothesis.extra.numpy import arrays, mutually_broadcastable_shapes
from stand_ins import Exporter, no_order

from xdev.errors import DeviceMismatchError
from xdev.ufunc import cuda, cuda_plan, vectorize
from xdev.ufunc.cuda import CudaLoops


def add(x, y):
    return x + y


def divide(x, y):
    return x // y, x % y


@pytest.fixture(scope="module")
def gpu():
    interpreter = Interpreter()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            cuda.CudaLoops, "kernel", lambda _, *key: interpreter.kernel(*key)
        )
        patch.setattr(cuda_plan, "Launch", interpreter.launch)
        patch.setattr(cuda.CudaLoops, "_learn", lambda *_: None)
        patch.setattr(cuda.BACKEND, "count", lambda: 1)
        patch.setattr(cuda, "require", lambda: None)
        patch.setattr(cuda.cuda_streams, "ordered", no_order)
        patch.setattr(cuda.Array, "cupy", host_copy)
        with host_memory():
            yield interpreter


SUM = vectorize(add)._cuda


@st.composite
def operands(draw):
    """Return two broadcastable views of any strides, and an output's memory order."""
    shapes = draw(mutually_broadcastable_shapes(num_shapes=2, max_dims=3, max_side=4))
    found = []
    for shape in shapes.input_shapes:
        order = draw(st.permutations(range(len(shape))))
        steps = [draw(st.sampled_from([1, 1, 2, -1])) for _ in shape]
        dtype = draw(st.sampled_from([np.int16, np.int32, np.float64]))
        base = draw(
            arrays(
                dtype,
                [shape[axis] * abs(steps[axis]) for axis in order],
                elements=st.integers(-100, 100),
            )
        )
        view = base.transpose(np.argsort(order).astype(int)) if shape else base
        found.append(view[(..., *(slice(None, None, step) for step in steps))])
    return shapes.result_shape, found, draw(st.sampled_from("CF"))


@pytest.mark.usefixtures("gpu")
@settings(max_examples=60)
@given(operands())
def test_any_layout_equals_numpy(case):
    shape, (x, y), order = case
    expected = np.add(x, y)

    made = SUM((on_device(x), on_device(y)))

    np.testing.assert_array_equal(to_host(made), expected)
    assert made.dtype == expected.dtype
    if min(shape, default=2) > 1:
        assert made.strides == expected.strides
    out = np.full(shape, 99, expected.dtype, order)
    out = out[::-1] if shape else out
    given_out = on_device(out)
    assert SUM((on_device(x), on_device(y)), given_out) is given_out
    np.testing.assert_array_equal(out, expected)


@pytest.mark.usefixtures("gpu")
@settings(max_examples=40)
@given(operands(), st.data())
def test_where_computes_only_what_it_says(case, data):
    shape, (x, y), _ = case
    where = data.draw(arrays(np.bool_, shape))
    dtype = np.result_type(x, y)
    out, expected = np.full(shape, 7, dtype), np.full(shape, 7, dtype)

    SUM((on_device(x), on_device(y)), on_device(out), where=on_device(where))

    np.testing.assert_array_equal(out, np.add(x, y, out=expected, where=where))


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("shift", [-3, -1, 0, 1, 5])
@pytest.mark.parametrize("step", [1, -1])
def test_an_output_that_overlaps_an_input_is_as_in_numpy(shift, step):
    def views(memory):
        x = memory[5:15]
        return x, memory[5 + shift : 15 + shift][::step]

    ours, theirs = np.arange(20.0), np.arange(20.0)
    x, out = views(ours)
    np.add(views(theirs)[0], 1.0, out=views(theirs)[1])

    SUM((on_device(x), 1.0), on_device(out))

    np.testing.assert_array_equal(ours, theirs)


@pytest.mark.usefixtures("gpu")
def test_several_outputs_any_of_them_given():
    loops = vectorize(divide)._cuda
    x, y = np.array([7, 8, 9]), np.array([2, 3, 4])
    out = np.zeros(3, np.int64)

    first, second = loops((on_device(x), on_device(y)), (None, on_device(out)))

    np.testing.assert_array_equal(to_host(first), x // y)
    np.testing.assert_array_equal(out, x % y)
    assert to_host(second).ctypes.data != first.data.ptr


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize(
    ("number", "expected"),
    [(2, "float32"), (2.5, "float32"), (np.float64(2.5), "float64"), (1j, "complex64")],
    ids=repr,
)
def test_numbers_are_weak_or_strong_as_in_numpy(number, expected):
    x = np.arange(5, dtype=np.float32)

    made = SUM((on_device(x), number))

    assert made.dtype == expected == (x + number).dtype
    np.testing.assert_array_equal(to_host(made), x + number)


@pytest.mark.usefixtures("gpu")
def test_a_python_int_too_large_for_the_dtype_is_refused():
    with pytest.raises(OverflowError, match="y is 300, which uint8"):
        SUM((on_device(np.zeros(3, np.uint8)), 300))


def test_one_launch_a_call_and_none_for_size_zero(gpu):
    x, y = np.ones((3, 4)), np.ones((3, 1))
    for a, b, launches in [(x, y, 1), (x[:0], y[:0], 0), (x.T, x.T, 1)]:
        before = gpu.launches
        made = SUM((on_device(a), on_device(b)))
        assert made.shape == np.broadcast_shapes(a.shape, b.shape)
        assert gpu.launches - before == launches


@pytest.mark.usefixtures("gpu")
def test_arrays_of_one_order_run_the_contiguous_kernel(monkeypatch):
    compile_ = CudaLoops.kernel
    templates = []

    def kernel(self, spec, kernel):
        templates.append(kernel.template)
        return compile_(self, spec, kernel)

    monkeypatch.setattr(CudaLoops, "kernel", kernel)
    for x in (np.ones((3, 4)), np.ones((3, 4), order="F"), np.ones((4, 3, 2)).T):
        made = vectorize(add)._cuda((on_device(x), on_device(x)))

        assert made.strides == np.add(x, x).strides
    assert templates == ["rows"] * 3


@pytest.mark.usefixtures("gpu")
def test_a_foreign_array_is_read_and_written_in_place():
    x, out = np.arange(6.0).reshape(2, 3)[:, ::-1], np.zeros((3, 2)).T
    exporter = Exporter(out)

    assert SUM((Exporter(x), Exporter(x)), out=exporter) is exporter

    np.testing.assert_array_equal(out, x + x)
    assert type(SUM((Exporter(x), 1.0))) is cupy.ndarray


@pytest.mark.usefixtures("gpu")
def test_results_are_cast_to_out_as_far_as_casting_allows():
    x, out = np.array([1.5, 2.5]), np.zeros(2, np.int32)

    with pytest.raises(TypeError, match="same_kind"):
        SUM((on_device(x), 0.0), on_device(out))
    assert not out.any()

    SUM((on_device(x), 0.0), on_device(out), casting="unsafe")
    np.testing.assert_array_equal(out, [1, 2])
    half = np.zeros(2, np.float16)
    SUM((on_device(x), 0.1), on_device(half))
    np.testing.assert_array_equal(half, (x + 0.1).astype(np.float16))


@pytest.mark.usefixtures("gpu")
def test_dtype_says_what_to_compute_in():
    x = np.array([100, 100], np.int8)

    np.testing.assert_array_equal(
        to_host(
            SUM(
                (on_device(x), on_device(x)),
                signature=((None, None), (np.dtype("i4"),)),
            )
        ),
        [200, 200],
    )


X = np.zeros((2, 3), np.float32)


@pytest.mark.parametrize(
    ("args", "keywords", "error", "text"),
    [
        ((X,), {}, TypeError, "takes 2 arguments, not 1"),
        ((X, np.ones(2, np.float32)), {}, ValueError, r"\(2,3\) \(2,\)"),
        (
            (X, X),
            {"out": np.zeros((3, 3), np.float32)},
            ValueError,
            r"out has.*\(3,3\)",
        ),
        ((X, X), {"out": np.zeros((1, 3), np.float32)}, ValueError, "out has shape"),
        ((X, X), {"out": 3.0}, TypeError, "out= is not an array but float"),
        ((X, X), {"out": np.ndarray}, TypeError, "out= is not an array but the class"),
        ((X, "text"), {}, TypeError, "not an array but str"),
        (
            (X, np.ndarray),
            {},
            TypeError,
            "not an array but the class ndarray",
        ),
        ((X, X), {"where": np.ones((2, 3))}, TypeError, "where must be bool"),
        (
            (X, X),
            {"signature": ((None, None), (np.dtype("S3"),))},
            TypeError,
            "not supported",
        ),
    ],
)
def test_bad_input_is_refused_before_anything_is_written(
    gpu, args, keywords, error, text
):
    def moved(x):
        if isinstance(x, tuple):
            return tuple(map(moved, x))
        return on_device(x) if isinstance(x, np.ndarray) else x

    before = gpu.launches
    with pytest.raises(error, match=text):
        SUM(tuple(map(moved, args)), **{k: moved(v) for k, v in keywords.items()})
    assert gpu.launches == before


@pytest.mark.usefixtures("gpu")
def test_a_host_array_is_refused_with_the_call_that_moves_it():
    with pytest.raises(DeviceMismatchError, match="to_device"):
        SUM((on_device(X), X))
    with pytest.raises(DeviceMismatchError, match="to_device"):
        SUM((on_device(X), 1.0), X.copy())


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize(
    ("exporter", "error", "text"),
    [
        (Exporter(X, writable=False), ValueError, "read-only"),
        (Exporter(X, mask=Exporter(X)), TypeError, "where="),
        (Exporter(X.astype(">f4")), TypeError, "byte order"),
        (Exporter(np.ndarray((2, 3), "f4", bytearray(30), 1)), ValueError, "aligned"),
    ],
)
def test_exporters_that_cannot_be_written_are_refused(exporter, error, text):
    with pytest.raises(error, match=text):
        SUM((on_device(X), on_device(X)), exporter)


@pytest.mark.usefixtures("gpu")
def test_a_host_number_array_of_no_dimensions_goes_anywhere():
    made = SUM((on_device(X), np.array(2.0, np.float32)))

    np.testing.assert_array_equal(to_host(made), X + 2)
