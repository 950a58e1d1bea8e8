"""How arrays meet in a kernel, against NumPy's own broadcasting and addresses."""

import numpy as np
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import mutually_broadcastable_shapes

from xdev.ufunc import cuda_layout as layout


@st.composite
def arrays(draw):
    """Return views with axes in any order, reversed and skipped, that broadcast."""
    shapes = draw(mutually_broadcastable_shapes(num_shapes=3, max_dims=4, max_side=4))
    views = []
    for shape in shapes.input_shapes:
        order = draw(st.permutations(range(len(shape))))
        steps = [draw(st.sampled_from([1, 2, -1])) for _ in shape]
        base = np.zeros([shape[axis] * abs(steps[axis]) for axis in order], np.int32)
        view = base.transpose(np.argsort(order).astype(int)) if shape else base
        views.append(view[(..., *(slice(None, None, step) for step in steps))])
    return shapes.result_shape, views


@given(arrays())
def test_reach_covers_the_elements_and_no_more(case):
    _, views = case
    for x in views:
        reach = layout.Reach.of(x.shape, x.strides, x.itemsize)
        low, high = np.lib.array_utils.byte_bounds(x) if x.size else (0, 0)
        assert reach.high - reach.low == high - low


def test_neighbours_do_not_meet():
    reach = layout.Reach.of((4,), (4,), 4)

    assert reach.meets(reach, 0)
    assert reach.meets(reach, 15)
    assert reach.meets(reach, -15)
    assert not reach.meets(reach, 16)
    assert not reach.meets(reach, -16)


@given(st.integers(1, 2**31 - 1), st.integers(0, 2**31 - 1))
def test_division_by_multiplication_is_exact(extent, i):
    magic, shift = layout.divisor(extent)

    assert 0 < magic < 2**32
    assert (i * magic >> 32) + i >> shift == i // extent
    assert (i * magic >> 32) + i < 2**32
