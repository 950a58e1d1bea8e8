"""A freed array: every function of xdev refuses it, and NumPy and CuPy do."""

import numpy as np
import pytest
from calls import CALLS, operands, placed
from memory_laws import USES
from running import add

import xdev
from xdev import memory
from xdev.errors import UseAfterFreeError
from xdev.memory import Pool
from xdev.testing import FakeSource

SHAPE = (200, 200)


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


@pytest.mark.parametrize("call", CALLS, ids=str)
def test_every_function_refuses_a_freed_array(call, x):
    every = list(operands(call))
    for odd in (*zip(every), every):  # in each of its places, and in all
        args, options = placed(call, lambda given: given, odd, lambda _: x)
        with pytest.raises(UseAfterFreeError, match="freed before"):
            call.function(*args, **options)


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


@xdev.guvectorize("(n)->(),()")
def ends(values, first, last):
    first[0] = values[0]
    last[0] = values[-1]


@pytest.mark.parametrize("warm", [False, True])
def test_ufuncs_refuse_freed_arrays_and_write_nothing(warm):
    a, x = np.ones(SHAPE), freed()
    if warm:
        add(a, a, out=a.copy())
        add(a, 2.0, out=a.copy())
    for call, label in (
        (lambda: add(a, x), "y"),
        (lambda: add(x, a), "x"),
        (lambda: add(x, 1.0), "x"),
        (lambda: add(a, a, out=x), "out="),
        (lambda: add(a, a, x), "out="),
        (lambda: add(a, 2.0, out=x), "out="),
        (lambda: add(a, a, where=x), "where="),
        (lambda: add(a, a, out=a, where=x), "where="),
        (lambda: add.reduce(x), "array"),
        (lambda: add.reduce(a, out=x), "out="),
        (lambda: add.reduce(a, where=x), "where="),
        (lambda: add.accumulate(x), "array"),
        (lambda: add.outer(a, x), "b"),
        (lambda: add.at(x, [0], 1.0), "a"),
        (lambda: add.at(a, [0], x), "b"),
        (lambda: ends(x), "values"),
        (lambda: ends(a, out=(a[:, 0], x)), r"out\[1\]"),
    ):
        with pytest.raises(UseAfterFreeError, match=rf"\b{label} of shape"):
            call()
    assert (a == 1).all()


@pytest.mark.parametrize("use", USES)
def test_transfers_and_memory_functions_refuse_freed_arrays(x, use):
    with pytest.raises(UseAfterFreeError):
        use(x)


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
    add(a, a, out=a.copy())
    uses = lambda: x + 1, lambda: a + x, lambda: cupy.sin(x), x.sum, lambda: x.fill(1)
    for use in uses:
        with pytest.raises((TypeError, ValueError, UseAfterFreeError)):
            use()
    for use in (
        lambda: xdev.add(a, x),
        lambda: add(a, a, out=x),
        lambda: add(x, 1.0),
        lambda: xdev.to_numpy(x),
    ):
        with pytest.raises(UseAfterFreeError):
            use()
    cupy.cuda.runtime.deviceSynchronize()  # no kernel met a null pointer
    assert memory.allocated("cuda") == before
