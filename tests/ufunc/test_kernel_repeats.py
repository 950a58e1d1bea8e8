"""Kernels on the CPU, called again and by threads: each call as the first one."""

import gc
import itertools
import pickle
import sys
import threading
import weakref

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import xdev

KNOWN = 3  # calls: the first is learnt
fresh = xdev.kernel  # of a function that nobody called before


def axpy(i, a, x, out):
    out[i] = a * x[i]


def plane(i, j, x, out):
    out[i, j] = x[i, j] + 1


def keep(i, value, out):
    out[i] = value


def count(i, out):
    out[i] += 1


def copy(i, x, out):
    out[i] = x[i]


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
    x, out, bound = np.arange(16, dtype="i4"), np.zeros(4), fresh(copy)[4]
    for _ in range(KNOWN):
        for given in (x[:4], x[:8], x[::2], x[::-4], x.view("f4"), x.view("u4"), x[:4]):
            bound(given, out)
            assert_array_equal(out, given[:4])


NUMBERS = [
    *(-0.0, 1 / 3, float("nan"), -float("inf"), 1e-46, 3.4028234e38, -1, 2**63 - 1),
    *(-(2**63), True, complex(1 / 3, -2.5), np.float32(1 / 3), np.float64(1 / 3)),
    *(np.int8(-3), np.uint8(200), np.uint64(2**64 - 1), np.bool_(True)),
    *(np.complex64(1 + 2j), np.complex128(1 - 2j)),
]


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize("dtype", ["f", "D"])
def test_numbers_of_every_kind(dtype):
    kernel = fresh(keep)
    for number in NUMBERS:
        if dtype == "f" and isinstance(number, complex | np.complexfloating):
            continue
        first, out = (np.full(3, 7, dtype) for _ in range(2))
        fresh(keep)[3](number, first)
        learnt(kernel[3], number, np.zeros(3, dtype))
        kernel[3](number, out)
        assert out.tobytes() == first.tobytes(), number


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
    kept = [weakref.ref(each) for each in (kernel, x, out)]
    del kernel, x, out, bound
    gc.collect()
    assert [each() for each in kept] == [None] * 3


@xdev.kernel
def twice(i, x):
    x[i] *= 2


def test_a_known_kernel_is_shown_and_pickled_as_before():
    bound = learnt(twice[3], np.ones(3))
    assert repr(bound) == "<xdev kernel 'twice'>[3]"
    assert pickle.loads(pickle.dumps(bound)) is bound  # noqa: S301
    assert twice[3] is bound
    assert twice[True] is not twice[1]
    for same in (np.int64(3), np.array(3), (3,), ((3,), 256)):
        assert twice[same].extents == bound.extents
    for k in range(500):  # more than are known at a time
        twice[k]
    twice[3](x := np.ones(3))
    assert x.tolist() == [2, 2, 2]


# Threads: they share a kernel's points, and call kernels themselves.


@xdev.kernel
def count_plane(i, j, out):
    out[i, j] += 1


SHAPES = [
    *((0, 5), (1, 1), (3, 7), (257, 300), (2, 9000), (9000, 2)),
    *((n,) for n in (1, 3, 1000, 99_991)),
]


@pytest.mark.usefixtures("kernels_in_threads")
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_every_point_is_computed_once(shape):
    kernel = count_plane if len(shape) > 1 else fresh(count)
    out = np.zeros(shape, np.int64)

    for _ in range(20):
        kernel[shape](out)

    assert (out == 20).all()


@pytest.fixture
def at_once():
    """Call a function of a number in four threads that take turns quickly."""

    def call(use):
        users = [threading.Thread(target=use, args=(k,)) for k in range(4)]
        for user in users:
            user.start()
        for user in users:
            user.join()

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield call
    sys.setswitchinterval(before)


def test_threads_call_one_kernel_at_once_while_calls_are_forgotten(at_once):
    large, small, wrong = fresh(axpy)[50_000], fresh(axpy)[3], []
    x = np.arange(50_000.0)

    def use(thread):
        out = np.zeros_like(x)
        for a in range(1000 * thread, 1000 * thread + 200):
            large(float(a), x, out)
            if not (out == a * x).all():
                wrong.append(a)
        out = np.zeros(3)
        for step in range(70 * thread, 70 * thread + 800):
            few = x[:999:][:: step % 300 + 1][:3]
            learnt(small, 2.0, few, out)
            if out.tolist() != (2 * few).tolist():
                wrong.append(step)

    at_once(use)
    assert not wrong
