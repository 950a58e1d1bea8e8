"""Writes of kernels are seen: by the arrays, by compilers, and by autograd."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from running import locked

import xdev
from xdev import atomic


def helped(y, i):
    y[i] = 7


def plain(i, y):
    y[i] = 7


def whole(i, y):
    y += 7 + i


def by_a_helper(i, y):
    helped(y, i)


def by_another_name(i, y):
    len = y  # noqa: A001 - its name is a reader's
    len[i] = 7


def atomically(i, y):
    atomic.add(index=i, a=y, value=7)


def through_flat(i, y):
    y.flat[i] = 7


WRITERS = plain, whole, by_a_helper, by_another_name, atomically, through_flat


@pytest.mark.parametrize("function", WRITERS, ids=lambda f: f.__name__)
def test_what_a_kernel_writes_is_seen(function):
    y, kernel = np.arange(4.0), xdev.kernel(function)
    kernel[1](y)
    assert not np.array_equal(y, np.arange(4.0))

    y = locked(np.arange(4.0))
    for _ in range(2):
        with pytest.raises(ValueError, match=r"y is read-only.*a copy") as caught:
            kernel[1](y)
    assert function is through_flat or caught.match(r"\.py:\d+: ")
    assert_array_equal(y, np.arange(4.0))


FLAG = False


@xdev.kernel
def never(i, y, out):
    if FLAG:
        y[i] = 7
        y += 7
        atomic.add(y, i, 7)
    part = slice(i, i + 1)
    z = y[i - 1] + len(y) + max(y[0], y[-1]) + y[part][0] + y.shape[0]
    out[i] = y[i] + 0 * z


@xdev.kernel
def two(i, x, y):
    x[i] = y[i]


def test_of_read_only_arrays_those_that_are_written_are_named():
    out = np.zeros(4)
    never[4](locked(np.arange(4.0)), out)
    assert_array_equal(out, np.arange(4))
    x = locked(np.arange(4.0))
    with pytest.raises(ValueError, match=": x is read-only"):
        two[4](x, x)
    with pytest.raises(TypeError, match=r"one number is there") as caught:
        xdev.kernel(lambda i, y: atomic.add(y, i, y[i][i]))[4](locked(np.arange(4.0)))
    assert "read-only" not in str(caught.value)


# PyTorch's tensors: autograd sees the writes, and no others.


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


@xdev.kernel
def written(i, x, y):
    y[i] = 0 * x[i] * len(x) * y.shape[0] * max(x[i], y[i])


@xdev.kernel
def added(i, x, y):
    if x[i] < 99:
        atomic.add(y, i, -x[i])


@xdev.guvectorize("(n)->(n)")
def doubled(x, out):
    for k in range(x.size):
        out[k] = 2 * x[k]


@pytest.mark.parametrize("kernel", [written, added], ids=repr)
@pytest.mark.parametrize("place", [0, 1])
def test_gradients_know_what_was_written_and_what_was_only_read(torch, kernel, place):
    w = torch.ones(4, dtype=torch.float64, requires_grad=True)
    kept = torch.arange(4, dtype=torch.float64)
    total = (w * kept).sum()
    arrays = [torch.arange(4, dtype=torch.float64) for _ in range(2)]
    arrays[place] = kept

    kernel[4](*arrays)

    if place == 1:
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            total.backward()
    else:
        total.backward()
        assert w.grad.tolist() == [0, 1, 2, 3]


def test_outputs_of_generalized_ufuncs_are_seen_to_be_written(torch):
    for call in (
        lambda y: doubled(torch.ones(4), y),
        lambda y: doubled(torch.ones(4), out=(y,)),
        lambda y: doubled(np.ones(4, np.float32), out=y),
    ):
        y = torch.zeros(4)
        before = y._version
        call(y)
        assert y.tolist() == [2] * 4
        assert y._version > before
    with pytest.raises(TypeError, match=r"written\(\): y is a view that is expanded"):
        written[4](torch.ones(4), torch.ones(1).expand(4))
