"""A freed array: every function of xdev refuses it, and NumPy and CuPy do."""

import types

import numpy as np
import pytest

import xdev
from xdev import memory
from xdev.errors import UseAfterFreeError
from xdev.memory import Pool
from xdev.testing import FakeSource

SHAPE = (200, 200)
REST = {  # what a function takes after its first array
    "astype": (xdev.float32,),
    "broadcast_to": ((2, *SHAPE),),
    "can_cast": (xdev.float64,),
    "clip": (0, 1),
    "expand_dims": (0,),
    "full_like": (1,),
    "matrix_power": (2,),
    "moveaxis": (0, 1),
    "permute_dims": ((1, 0),),
    "repeat": (2,),
    "reshape": ((-1,),),
    "roll": (1,),
    "squeeze": (0,),
    "tile": ((2,),),
}
#: Functions that take no array: they make one, or tell about types and devices.
NONE = {
    *("__array_namespace_info__", "adapt", "arange", "batches", "broadcast_shapes"),
    *("can_access_peer", "compare", "cu", "current_stream", "default_device"),
    *("devices", "empty", "empty_pinned", "eye", "fftfreq", "full", "isdtype"),
    *("graph", "guvectorize", "kernel", "linspace", "ones", "rfftfreq"),
    *("set_default_device", "synchronize"),
    *("timeit", "to_device", "transfer_guard", "use_device", "vectorize", "zeros"),
}
TWO = {
    *("add", "atan2", "copysign", "divide", "floor_divide", "hypot", "logaddexp"),
    *("nextafter", "pow", "remainder", "subtract", "multiply", "maximum", "minimum"),
    *("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"),
    *("logical_and", "logical_or", "logical_xor", "matmul", "tensordot", "vecdot"),
    *("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift"),
    *("bitwise_right_shift", "cross", "outer", "solve", "searchsorted", "take"),
    *("take_along_axis", "isin", "result_type", "broadcast_arrays", "meshgrid"),
}


def names():
    found = [(xdev, name) for name in xdev.__all__]
    found += [(xdev.linalg, name) for name in xdev.linalg.__all__]
    found += [(xdev.fft, name) for name in xdev.fft.__all__]
    return [
        pytest.param(getattr(room, name), name, id=name)
        for room, name in found
        if name not in NONE and callable(getattr(room, name))
        if not isinstance(getattr(room, name), type | types.ModuleType)
    ]


def freed(shape=SHAPE, device="cpu"):
    with memory.track():
        x = xdev.ones(shape, device=device)
    memory.free(x)
    return x


@pytest.fixture
def on_device(on_fake_memory):
    """A CuPy array that was freed; on fake memory, so it needs no driver."""
    cupy = pytest.importorskip("cupy")
    with on_fake_memory(Pool(FakeSource(1 << 30))):
        x = cupy.ndarray(SHAPE, "f4")
    memory.free(x)
    return x


@pytest.fixture(params=["numpy", "numpy 0-d", "numpy's own", "cupy", "fake"])
def x(request):
    if request.param == "numpy's own":
        own = np.ones(SHAPE)
        memory.free(own)
        return own
    if request.param == "cupy":
        return request.getfixturevalue("on_device")
    if request.param == "fake":
        return freed(device="fake")
    return freed(SHAPE if request.param == "numpy" else ())


def calls(function, name, x, other):
    """Call a function with a freed array in each of its places."""
    if name == "where":
        yield lambda: function(x, other, other)
        yield lambda: function(other > 0, x, 1)
        yield lambda: function(other > 0, 1, x)
    elif name in ("concat", "stack"):
        yield lambda: function([other, x])
        yield lambda: function([x])
    elif name in TWO:
        yield lambda: function(x, other)
        yield lambda: function(other, x)
        yield lambda: function(x, x)
    else:
        yield lambda: function(x, *REST.get(name, ()))
        if name == "clip":
            yield lambda: function(other, x, None)


@pytest.mark.parametrize(("function", "name"), names())
def test_every_function_refuses_a_freed_array(function, name, x):
    for call in calls(function, name, x, np.ones(x.shape)):
        with pytest.raises(UseAfterFreeError, match="freed before"):
            call()


@xdev.kernel
def cleared(i, out):
    out[i] = 0


def test_the_text_says_which_argument_and_where_it_was_freed():
    with memory.track():
        x = xdev.ones(SHAPE, device="cpu")
        memory.free(x)
    for call, text in (
        (
            lambda: xdev.add(np.ones(SHAPE), x),
            r"xdev\.add: x2 of shape \(200, 200\) was",
        ),
        (lambda: xdev.clip(np.ones(SHAPE), 0, 1, out=x), "out of shape"),
        (lambda: cleared[3](x), "cleared: out of shape"),
        (lambda: memory.free(x), "xdev.memory.free: the array of shape"),
        (lambda: xdev.sum(x), r"test_use_after_free\.py:\d+"),
    ):
        with pytest.raises(UseAfterFreeError, match=text):
            call()


@xdev.vectorize
def total(x, y):
    return x + y


@xdev.guvectorize("(n)->(),()")
def ends(values, first, last):
    first[0] = values[0]
    last[0] = values[-1]


@pytest.mark.parametrize("warm", [False, True])
def test_ufuncs_refuse_freed_arrays_and_write_nothing(warm):
    a, x = np.ones(SHAPE), freed()
    if warm:
        total(a, a, out=a.copy())
        total(a, 2.0, out=a.copy())
    for call, label in (
        (lambda: total(a, x), "y"),
        (lambda: total(x, a), "x"),
        (lambda: total(x, 1.0), "x"),
        (lambda: total(a, a, out=x), "out="),
        (lambda: total(a, a, x), "out="),
        (lambda: total(a, 2.0, out=x), "out="),
        (lambda: total(a, a, where=x), "where="),
        (lambda: total(a, a, out=a, where=x), "where="),
        (lambda: total.reduce(x), "array"),
        (lambda: total.reduce(a, out=x), "out="),
        (lambda: total.reduce(a, where=x), "where="),
        (lambda: total.accumulate(x), "array"),
        (lambda: total.outer(a, x), "b"),
        (lambda: total.at(x, [0], 1.0), "a"),
        (lambda: total.at(a, [0], x), "b"),
        (lambda: ends(x), "values"),
        (lambda: ends(a, out=(a[:, 0], x)), r"out\[1\]"),
    ):
        with pytest.raises(UseAfterFreeError, match=rf"\b{label} of shape"):
            call()
    assert (a == 1).all()


def test_transfers_and_memory_functions_refuse_freed_arrays(x):
    for call in (
        lambda: xdev.to_device(x, "cpu"),
        lambda: xdev.to_device(np.ones(x.shape), "cpu", out=x),
        lambda: xdev.to_numpy(x),
        lambda: xdev.adapt("cpu", {"x": [x]}),
        lambda: xdev.add(np.ones(x.shape), 1, out=x),
        lambda: xdev.clip(np.ones(x.shape), 0, 1, out=x),
        lambda: xdev.real(np.ones(x.shape), out=x),
        lambda: xdev.pin(x),
        lambda: xdev.is_pinned(x),
        lambda: xdev.device_of(x),
        lambda: memory.free(x),
        lambda: memory.record_stream(x, 0),
    ):
        with pytest.raises(UseAfterFreeError):
            call()


@pytest.mark.parametrize("pooled", [True, False])
def test_direct_use_in_numpy_computes_nothing_and_touches_nothing(pooled):
    own = np.ones(SHAPE)
    x, view = freed() if pooled else own, own[...]
    if not pooled:
        memory.free(own)
    for use in (
        lambda: x + 1,
        x.sum,
        lambda: np.sin(x),
        lambda: np.logical_and(x, x),
        lambda: np.ones(SHAPE).__iadd__(x),
        lambda: x.fill(1),
        lambda: x.__setitem__(..., 1),
        lambda: np.copyto(x, np.ones(SHAPE)),
        lambda: np.add(1, 1, out=x),
    ):
        with pytest.raises((TypeError, ValueError)):
            use()
    assert x.nbytes == 0 or not pooled
    assert x.shape == SHAPE
    assert x.base is None
    assert (view == 1).all()


def test_direct_use_in_cupy_finds_no_memory(on_device):
    assert on_device.shape == SHAPE
    assert on_device.nbytes == on_device.data.ptr == 0
    assert repr(on_device) == "<freed array of shape (200, 200)>"
    for use in (
        lambda: on_device.__cuda_array_interface__,
        on_device.__dlpack__,
        lambda: np.from_dlpack(on_device),
    ):
        with pytest.raises(UseAfterFreeError):
            use()


@pytest.mark.cuda
def test_cupy_computes_nothing_with_a_freed_array(cuda):  # noqa: ARG001
    import cupy

    a = cupy.ones(SHAPE, "f4")
    before = memory.allocated("cuda")
    x = cupy.ones(SHAPE, "f4")
    memory.free(x)
    total(a, a, out=a.copy())
    uses = lambda: x + 1, lambda: a + x, lambda: cupy.sin(x), x.sum, lambda: x.fill(1)
    for use in uses:
        with pytest.raises((TypeError, ValueError, UseAfterFreeError)):
            use()
    for use in (
        lambda: xdev.add(a, x),
        lambda: total(a, a, out=x),
        lambda: total(x, 1.0),
        lambda: xdev.to_numpy(x),
    ):
        with pytest.raises(UseAfterFreeError):
            use()
    cupy.cuda.runtime.deviceSynchronize()  # no kernel met a null pointer
    assert memory.allocated("cuda") == before
