"""Writes of kernels are seen by compilers: what runs is the judge."""

import math
from types import ModuleType

import numpy as np
import pytest

import xdev
from xdev import atomic

PART = slice(0, 2)
PARTS = (slice(0, 2),)
SLICE = slice
MODULE = ModuleType("module")
MODULE.SLICE, MODULE.PART, MODULE.inner = slice, PART, MODULE


def cut(i):
    return slice(i, i + 1)


MODULE.cut = cut


def cut_by_another(i):
    return cut(i)


def part_of_outside():
    return MODULE.PART


def wrapped(i, n):
    return i % n


MODULE.wrapped = wrapped


@xdev.vectorize
def put(y, i):
    y[i] = 7
    return i


def plain(i, y):
    y[i] = 7


def augmented(i, y):
    y[i] += 7


def whole(i, y):
    y += 7 + i


def unpacked(i, y):
    _, y[i] = 1.0, 7.0


def counted(i, y):
    for y[i] in range(8):
        pass


def by_a_part(i, y):
    part = y[i:]
    part[0] = 7


def by_a_slice(i, y):
    here = slice(i, i + 1)
    part = y[here]
    part[0] = 7


def by_a_slice_from_outside(i, y):
    part = y[PART]
    part[i] = 7


def by_slices_from_outside(i, y):
    part = y[PARTS]
    part[i] = 7


def by_a_slice_of_a_helper(i, y):
    part = y[cut(i)]
    part[0] = 7


def by_a_slice_of_a_helpers_helper(i, y):
    here = cut_by_another(i)
    part = y[here]
    part[0] = 7


def by_a_slice_that_a_helper_reads(i, y):
    here = part_of_outside()
    part = y[here]
    part[i] = 7


def by_a_slice_in_a_module(i, y):
    here = MODULE.inner.PART
    part = y[here]
    part[i] = 7


def by_a_slice_of_a_modules_helper(i, y):
    here = MODULE.cut(i)
    part = y[here]
    part[0] = 7


def by_another_name_of_slice(i, y):
    here = SLICE(i, i + 1)
    part = y[here]
    part[0] = 7


def by_the_type_in_a_module(i, y):
    here = MODULE.inner.SLICE(i, i + 1)
    part = y[here]
    part[0] = 7


def by_a_new_axis(i, y):
    part = y[np.newaxis]
    part[0, i] = 7


def by_a_ufunc(i, y):
    put(y, i)


def by_another_name(i, y):
    len = put  # noqa: A001 - its name is a reader's
    len(y, i)


def atomically(i, y):
    atomic.add(y, i, 7)


def atomically_by_name(i, y):
    atomic.add(index=i, a=y, value=7)


def through_flat(i, y):
    y.flat[i] = 7


WRITERS = [
    *(plain, augmented, whole, unpacked, counted, by_a_part, by_a_slice),
    *(by_a_slice_from_outside, by_slices_from_outside, by_a_slice_of_a_helper),
    *(by_a_slice_of_a_helpers_helper, by_a_slice_that_a_helper_reads),
    *(by_a_slice_in_a_module, by_a_slice_of_a_modules_helper),
    *(by_another_name_of_slice, by_the_type_in_a_module),
    *(by_a_new_axis, by_a_ufunc, by_another_name, atomically, atomically_by_name),
    through_flat,
]


def reads(i, y):
    z = y[i] + y[wrapped(i, 2)] + y[i - 1] + len(y) + max(y[0], y[-1])
    z += y.shape[0]
    z += 1
    j = MODULE.wrapped(i, 2)
    z += y[j] + math.sqrt(y[j])


def reads_beside_slices(i, y):
    part = slice(i, i + 1)
    _ = y[0] + y[-1] + y[i - i] + part.start


@pytest.mark.parametrize("function", WRITERS, ids=lambda f: f.__name__)
def test_what_a_kernel_writes_is_seen(function):
    y = np.arange(4.0)

    xdev.kernel(function)[1](y)

    assert not np.array_equal(y, np.arange(4.0))
    assert xdev.kernel(function).writes(1, y) == {"y"}


@pytest.mark.parametrize("function", WRITERS, ids=lambda f: f.__name__)
def test_a_read_only_array_is_not_written(function):
    y = np.arange(4.0)
    y.flags.writeable = False

    with pytest.raises(ValueError, match="y is read-only"):
        xdev.kernel(function)[1](y)

    np.testing.assert_array_equal(y, np.arange(4.0))


FLAG = False


def never(i, y, out):
    if FLAG:
        y[i] = 7
        y += 7
        atomic.add(y, i, 7)
    out[i] = y[i]


def two(i, x, y):
    x[i] = y[i]


def two_by_one(i, x, y):
    x += y if i else x


def another_reason(i, y):
    atomic.add(a=y, i=i, value=1.0)


def test_what_is_never_written_may_be_read_only():
    y, out = np.arange(4.0), np.zeros(4)
    y.flags.writeable = False

    xdev.kernel(never)[4](y, out)

    np.testing.assert_array_equal(out, y)


@pytest.mark.parametrize("function", [two, two_by_one])
def test_of_read_only_arrays_those_that_are_written_are_named(function):
    x = np.arange(4.0)
    x.flags.writeable = False

    with pytest.raises(ValueError, match=": x is read-only"):
        xdev.kernel(function)[4](x, x)


def test_other_errors_beside_read_only_arrays_are_told_as_they_are():
    y = np.arange(4.0)
    y.flags.writeable = False

    with pytest.raises(TypeError, match="has three arguments") as caught:
        xdev.kernel(another_reason)[4](y)
    assert "read-only" not in str(caught.value)
    with pytest.raises(TypeError, match="cannot compile two_by_one"):
        xdev.kernel(two_by_one)[4](np.arange(4), y)  # int64 += float64


@pytest.mark.parametrize("function", [reads, reads_beside_slices])
def test_what_a_kernel_only_reads_is_not_taken_for_written(function):
    y = np.arange(4.0)
    y.flags.writeable = False

    xdev.kernel(function)[1](y)

    assert xdev.kernel(function).writes(1, y) == frozenset()


def beside_slices(i, y):
    part = slice(i, i + 1)
    y[0] + y[i] + part.start


def test_slices_beside_elements_write_nothing():
    assert xdev.kernel(beside_slices).writes(1, np.arange(4.0)) == frozenset()
