"""Kernels on the CPU, called again and by threads: each call as the first one."""

import gc
import itertools
import weakref
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from running import within

import xdev

KNOWN = 3  # calls: the first is learnt
fresh = xdev.kernel  # of a function that nobody called before


def axpy(i, a, x, out):
    out[i] = a * x[i]


def plane(i, j, x, out):
    out[i, j] = x[i, j] + 1


def learnt(bound, *args):
    for _ in range(KNOWN):
        bound(*args)
    return bound


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize("dtype", ["H", "D"])
def test_layouts_dtypes_and_extents_in_turn(dtype):
    whole = np.arange(24).reshape(4, 6).astype(dtype)
    views = whole, whole.T.copy().T, whole[::-1], whole[:, ::-1], whole[::2, ::2]
    kernel, results = fresh(plane), []
    for _, x in itertools.product(range(KNOWN + 2), views):
        for out in (np.zeros(x.shape, dtype), np.zeros(x.shape[::-1], dtype).T):
            kernel[x.shape](x, out)
            results.append((out, x))
            assert_array_equal(out, (x + 1).astype(dtype))
    for out, x in results:  # nothing was written later
        assert_array_equal(out, (x + 1).astype(dtype))
    x, out, bound = np.arange(16, dtype="i4"), np.zeros(4), fresh(axpy)[4]
    for _, a in itertools.product(range(KNOWN), (-0.0, 1 / 3, 7, True)):
        for given in (x[:4], x[:8], x[::2], x[::-4], x.view("f4"), x.view("u4")):
            bound(a, given, out)
            assert_array_equal(out, np.float64(a) * given[:4])


@pytest.mark.usefixtures("alone")
def test_an_array_that_became_read_only_or_was_freed_is_refused():
    x, y, out = np.arange(4.0), xdev.zeros(100_000), np.zeros(4)
    bound = learnt(fresh(axpy)[4], 2.0, x, out)
    learnt(bound, 2.0, y, out)
    xdev.memory.free(y)
    out.flags.writeable = False
    for _ in range(KNOWN):
        with pytest.raises(ValueError, match="read-only"):
            bound(3.0, x, out)
    x.flags.writeable, out.flags.writeable = False, True
    for a in range(KNOWN + 1):
        for call in (bound, fresh(axpy)[4]):
            with pytest.raises(xdev.UseAfterFreeError):
                call(2.0, y, out)
        bound(float(a), x, out)
        assert_array_equal(out, a * x)


@pytest.mark.usefixtures("alone")
def test_nothing_is_kept_alive():
    kernel = fresh(axpy)
    x, out = np.arange(4.0), np.zeros(4)
    bound = learnt(kernel[4], 2.0, x, out)
    assert repr(bound) == "<xdev kernel 'axpy'>[4]"
    assert kernel[4] is bound
    assert kernel[True] is not kernel[1]
    kept = [weakref.ref(each) for each in (kernel, x, out)]
    del kernel, x, out, bound
    gc.collect()
    assert [each() for each in kept] == [None] * 3


# Threads: they share a kernel's points, and call kernels themselves.


@xdev.kernel
def count(i, j, out):
    out[i, j] += 1


@pytest.mark.usefixtures("kernels_in_threads")
def test_every_point_is_computed_once():
    for shape in ((0, 5), (1, 1), (257, 300), (2, 9000), (9000, 2), (1, 99_991)):
        out = np.zeros(shape, np.int64)
        for _ in range(20):
            count[shape](out)
        assert (out == 20).all()


def test_threads_call_one_kernel_at_once_while_calls_are_forgotten():
    large, small = fresh(axpy)[50_000], fresh(axpy)[3]
    x = np.arange(50_000.0)

    def use(thread):
        out = np.zeros_like(x)
        for a in range(1000 * thread, 1000 * thread + 200):
            large(float(a), x, out)
            assert (out == a * x).all()
        out = np.zeros(3)
        for step in range(70 * thread, 70 * thread + 800):
            few = x[:999:][:: step % 300 + 1][:3]
            learnt(small, 2.0, few, out)
            assert out.tolist() == (2 * few).tolist()

    within(100, [partial(use, n) for n in range(4)], interval=1e-6)
