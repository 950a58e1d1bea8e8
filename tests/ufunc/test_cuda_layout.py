"""How arrays meet in a kernel, against NumPy's own broadcasting and addresses."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import mutually_broadcastable_shapes

from xdev.ufunc import cuda_layout as layout


def offsets(shape, strides):
    """Return the offset of each element, in C order of the indices."""
    found = np.zeros(shape, np.int64)
    for axis, (extent, stride) in enumerate(zip(shape, strides, strict=True)):
        steps = np.arange(extent) * stride
        found += steps.reshape([-1 if i == axis else 1 for i in range(len(shape))])
    return found


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
def test_broadcast_and_stretch_agree_with_numpy(case):
    shape, views = case

    assert layout.broadcast([x.shape for x in views], [], "f") == shape
    for x in views:
        stretched = layout.stretch(x.shape, x.strides, shape)
        expected = np.broadcast_to(x, shape)
        np.testing.assert_array_equal(
            offsets(shape, stretched), offsets(shape, expected.strides)
        )


@given(arrays())
def test_collapsed_axes_visit_the_same_elements_together(case):
    shape, views = case
    strides = [layout.stretch(x.shape, x.strides, shape) for x in views]

    extents, steps = layout.collapse(shape, strides)

    together = sorted(
        zip(*(offsets(shape, each).flat for each in strides), strict=True)
    )
    collapsed = zip(*(offsets(extents, each).flat for each in steps), strict=True)
    assert sorted(collapsed) == together
    assert len(extents) <= max(1, len(shape))


def test_contiguous_arrays_collapse_to_one_axis_in_any_order():
    for order in "CF":
        x = np.zeros((2, 3, 4), np.float32, order)
        assert layout.collapse(x.shape, [x.strides] * 2) == ((24,), [(4,), (4,)])


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


@pytest.mark.parametrize(
    ("inputs", "outputs"), [([(2,), (3,)], []), ([(2,)], [(3,)]), ([(3,)], [(1,)])]
)
def test_shapes_that_do_not_fit_are_refused(inputs, outputs):
    with pytest.raises(ValueError, match="f: "):
        layout.broadcast(inputs, outputs, "f")


def test_an_output_may_be_larger_than_the_inputs_as_in_numpy():
    assert layout.broadcast([(3,), ()], [(2, 3)], "f") == (2, 3)
