"""Calls of kernels that came before: as the first one, but for the time they take."""

import gc
import pickle
import sys
import weakref

import numpy as np
import pytest

import xdev
from xdev import _config
from xdev.ufunc.kernels import cpu

KNOWN = 3  # calls: the first is learnt


@pytest.fixture(autouse=True)
def one_thread(monkeypatch):
    """A pause of a busy machine is no work that threads, and Python, are asked for."""
    monkeypatch.setattr(_config, "num_threads", lambda: 1)


def fresh(function):
    """Return a kernel of a function that nobody called before."""
    return xdev.kernel(function)


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


@pytest.mark.parametrize("dtype", ["H", "D"])
def test_layouts_and_dtypes_in_turn(dtype):
    whole = np.arange(24).reshape(4, 6).astype(dtype)
    views = whole, whole.T.copy().T, whole[::-1], whole[:, ::-1], whole[::2, ::2]
    kernel, results = fresh(plane), []
    for _ in range(KNOWN + 2):
        for x in views:
            for out in (np.zeros(x.shape, dtype), np.zeros(x.shape[::-1], dtype).T):
                kernel[x.shape](x, out)
                results.append((out, x))
                np.testing.assert_array_equal(out, (x + 1).astype(dtype))
    for out, x in results:  # nothing was written later
        np.testing.assert_array_equal(out, (x + 1).astype(dtype))


def test_axes_extents_and_bytes_tell_arrays_apart():
    x = np.arange(16, dtype="i4")
    out = np.zeros(4)
    bound = fresh(copy)[4]
    for _ in range(KNOWN):
        for given in (x[:4], x[:8], x[::2], x[::-4], x.view("f4"), x.view("u4"), x[:4]):
            bound(given, out)
            np.testing.assert_array_equal(out, given[:4])
            bound(given[:4], out)
            np.testing.assert_array_equal(out, given[:4])


NUMBERS = [
    *(0.0, -0.0, 1.5, -3.25, 1 / 3, float("nan"), float("inf"), -float("inf")),
    *(1e-46, 1e-300, 3.4028234e38, 0, 1, -1, 2**63 - 1, -(2**63), 255, True, False),
    *(1j, complex(1 / 3, -2.5), np.float32(1 / 3), np.float64(1 / 3), np.int8(-3)),
    *(np.uint8(200), np.int64(-5), np.uint64(2**64 - 1), np.bool_(True), np.int32(7)),
    *(np.complex64(1 + 2j), np.complex128(1 - 2j)),
]


@pytest.mark.parametrize("dtype", ["f", "D"])
def test_numbers_of_every_kind(dtype):
    kernel = fresh(keep)
    for number in NUMBERS:
        if dtype in "fd" and isinstance(number, complex | np.complexfloating):
            continue
        first, out = (np.full(3, 7, dtype) for _ in range(2))
        fresh(keep)[3](number, first)
        learnt(kernel[3], number, np.zeros(3, dtype))
        kernel[3](number, out)
        assert out.tobytes() == first.tobytes(), number


def test_numbers_that_do_not_fit_are_pythons():
    out, bound = np.zeros(2, "f"), fresh(keep)[2]
    learnt(bound, 1, out)
    for number in (2**63, -(2**63) - 1, 10**30):
        with pytest.raises(OverflowError, match=r"keep: value is"):
            bound(number, out)
    assert out.tolist() == [1, 1]
    learnt(bound, 1.0, out)
    for number in (1e300, -3.5e38):
        with pytest.warns(RuntimeWarning, match="overflow"):
            bound(number, out)
        assert out.tolist() == [np.sign(number) * np.inf] * 2
        bound(1.0, out)
        assert out.tolist() == [1, 1]


def test_an_array_that_became_read_only_is_refused():
    x, out = np.arange(4.0), np.zeros(4)
    bound = learnt(fresh(axpy)[4], 2.0, x, out)
    out.flags.writeable = False
    for _ in range(KNOWN):
        with pytest.raises(ValueError, match="read-only"):
            bound(3.0, x, out)
    x.flags.writeable = False
    out.flags.writeable = True
    for a in range(KNOWN + 1):
        bound(float(a), x, out)
        np.testing.assert_array_equal(out, a * x)


def test_a_freed_array_is_refused():
    x, out = xdev.zeros(100_000), np.zeros(4)
    bound = learnt(fresh(axpy)[4], 2.0, x, out)
    xdev.memory.free(x)
    for _ in range(KNOWN):
        with pytest.raises(xdev.UseAfterFreeError):
            bound(2.0, x, out)


def test_other_arguments_go_to_python():
    x, out = np.arange(4.0), np.zeros(4)
    bound = learnt(fresh(axpy)[4], 2.0, x, out)
    for wrong in ((2.0, x), (2.0, x, out, out), (), (2.0, x, [0] * 4), (2.0, x, "a")):
        with pytest.raises(TypeError, match="axpy"):
            bound(*wrong)
    with pytest.raises(TypeError, match="positionally"):
        bound(2.0, x, out=out)
    with pytest.raises(TypeError, match="positionally"):
        bound(a=2.0, x=x, out=out)
    tail = np.zeros(40)[::10]
    for a in (3.0, 4.0, 5.0):
        bound(a, x.view(type("Derived", (np.ndarray,), {})), tail)
        np.testing.assert_array_equal(tail, a * x)
        bound(*(a, x, tail))
        np.testing.assert_array_equal(tail, a * x)


def test_more_layouts_than_are_known():
    bound, whole = fresh(count)[2], np.zeros((3 * cpu.MOST, 400), np.int64)
    for turn in range(2):
        for k in range(3 * cpu.MOST // 2):
            for _ in range(KNOWN):
                bound(whole[k, :: k + 1])
            assert (whole[k, :: k + 1][:2] == KNOWN * (turn + 1)).all()


def test_kernels_that_call_each_other_in_turn():
    first, second = fresh(axpy)[8], fresh(count)[8]
    x, out = np.ones(8), np.zeros(8)
    for k in range(10):
        first(float(k), x, out)
        second(out)
        first(1.0, out, x)
        assert x.tolist() == out.tolist() == [k + 1] * 8
        x[:] = 1


def test_nothing_is_kept_alive():
    kernel = fresh(axpy)
    x, out = np.arange(4.0), np.zeros(4)
    bound = learnt(kernel[4], 2.0, x, out)
    kept = [weakref.ref(each) for each in (kernel, x, out)]
    before = sys.getrefcount(None) if sys.version_info < (3, 12) else 0
    for _ in range(1000):
        bound(2.0, x, out)
    if before:
        assert abs(sys.getrefcount(None) - before) < 100
    del kernel, x, out, bound
    gc.collect()
    assert [each() for each in kept] == [None] * 3


@xdev.kernel
def twice(i, x):
    x[i] *= 2


def test_a_known_kernel_is_shown_and_pickled_as_before():
    x = np.ones(3)
    bound = learnt(twice[3], x)
    assert repr(bound) == "<xdev kernel 'twice'>[3]"
    assert pickle.loads(pickle.dumps(bound)) is bound  # noqa: S301
    assert not hasattr(bound, "__dict__")
    assert [twice[3], twice[True], twice[(3,)]] == [bound, twice[True], twice[(3,)]]
    assert twice[True] is not twice[1]
    with pytest.raises(TypeError, match="integers"):
        twice[3.0]
