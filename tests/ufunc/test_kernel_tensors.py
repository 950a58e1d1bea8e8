"""PyTorch's tensors in kernels: autograd sees the writes, and no others."""

import numpy as np
import pytest

import xdev
from xdev import atomic

torch = pytest.importorskip("torch")


def helped(x, i):
    x[i] = 0


@xdev.kernel
def cleared(i, x, y):
    y[i] = 0 * x[i] * len(x) * y.shape[0] * max(x[i], y[i])


@xdev.kernel
def counted(i, x, y):
    atomic.add(y, i, -x[i])


@xdev.kernel
def by_a_helper(i, x, y):
    helped(y, i)
    if x[i] > 9:
        y[i] = 1


@xdev.kernel
def by_a_helper_alone(i, x, y):
    if x[i] < 99:
        helped(y, i)


@xdev.kernel
def by_a_part(i, x, y):
    part = y[i:]
    part[0] = x[i]


@xdev.kernel
def by_a_name(i, x, y):
    z = y
    z[i] = x[i]


@xdev.guvectorize("(n)->(n)")
def doubled(x, out):
    for k in range(x.size):
        out[k] = 2 * x[k]


KERNELS = [cleared, counted, by_a_helper, by_a_helper_alone, by_a_part, by_a_name]


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.__name__)
def test_what_was_kept_for_gradients_is_not_written_silently(kernel):
    w = torch.ones(4, dtype=torch.float64, requires_grad=True)
    y = torch.arange(4, dtype=torch.float64)
    total = (w * y).sum()

    kernel[4](torch.arange(4, dtype=torch.float64), y)

    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        total.backward()


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.__name__)
def test_what_is_only_read_stays_good_for_gradients(kernel):
    w = torch.ones(4, dtype=torch.float64, requires_grad=True)
    x = torch.arange(4, dtype=torch.float64)
    total = (w * x).sum()

    kernel[4](x, torch.zeros(4, dtype=torch.float64))

    total.backward()
    assert w.grad.tolist() == [0, 1, 2, 3]


def test_outputs_of_generalized_ufuncs_are_seen_to_be_written():
    for call in (
        lambda y: doubled(torch.ones(4), y),
        lambda y: doubled(torch.ones(4), out=y),
        lambda y: doubled(torch.ones(4), out=(y,)),
        lambda y: doubled(np.ones(4, np.float32), out=y),
    ):
        y = torch.zeros(4)
        before = y._version
        call(y)
        assert y.tolist() == [2] * 4
        assert y._version > before


def test_a_leaf_that_requires_a_gradient_is_refused():
    y = torch.ones(4, requires_grad=True)

    with pytest.raises(TypeError, match="requires a gradient"):
        cleared[4](torch.ones(4), y)
    assert y.tolist() == [1] * 4

    with torch.no_grad():
        cleared[4](torch.ones(4), y)
    assert y.tolist() == [0] * 4


def test_written_views_without_memory_of_their_own_are_refused_by_name():
    row = torch.ones(1).expand(4)

    with pytest.raises(TypeError, match=r"cleared\(\): y is expanded"):
        cleared[4](torch.ones(4), row)
    cleared[4](row, out := torch.ones(4))
    assert out.tolist() == [0] * 4


def test_parts_that_are_only_read_are_told_from_elements():
    @xdev.kernel
    def summed(i, x, y):
        for j in range(x.shape[1]):
            y[i] += x[i, j] + x[i][j]

    x, y = torch.ones(3, 4), torch.zeros(3)
    summed[3](x, y)

    assert y.tolist() == [8] * 3
    assert x._version == 0
    assert y._version == 1
