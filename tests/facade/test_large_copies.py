"""What moves elements on CUDA gives the CPU's results, of every size and layout."""

import itertools

import numpy as np
import pytest
from running import sample

import xdev

SMALL, LARGE = (3, 40), (600, 1500)  # below and above where CUDA has kernels of its own
CHARS = "?bHieFd"
VIEWS = {
    "whole": lambda x: x,
    "transposed": lambda x: x.T,
    "stepped": lambda x: x[::2, ::-3],
    "shifted": lambda x: x[1:, 1:],
}
BOTH = (False, True)
#: Of each what it is called with, besides the array: by place, and by keyword.
CASES = {
    "astype": [((xdev.complex128,), {}), ((xdev.bool,), {})],
    "concat": [((), {"axis": axis}) for axis in (0, -1, None)],
    "cumulative_sum": [
        ((), {"axis": axis, "include_initial": more})
        for axis in (0, 1)
        for more in BOTH
    ],
    "cumulative_prod": [((), {"axis": 1}), ((), {"axis": -2, "include_initial": True})],
    "diff": [((), {}), ((), {"axis": 0}), ((), {"n": 2})],
    "repeat": [((3,), {}), ((2,), {"axis": 0}), ((2,), {"axis": -1})],
    "roll": [((n,), {"axis": axis}) for n in (7, -1, 0) for axis in (0, 1, None)],
    "stack": [((), {"axis": axis}) for axis in (0, 1, -1)],
    "tile": [(((2, 1),), {}), (((3,),), {}), (((2, 1, 2),), {}), (((0, 1),), {})],
    "tril": [((), {}), ((), {"k": -2})],
    "triu": [((), {}), ((), {"k": 5})],
}
CASES["roll"].append((((1, 2),), {"axis": (0, 1)}))
SEQUENCES = {"concat", "stack"}


@pytest.mark.cuda
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("shape", [SMALL, LARGE], ids=["small", "large"])
@pytest.mark.parametrize("char", CHARS)
def test_results_are_the_cpus(cuda, name, shape, char):
    whole = sample(shape, char)
    if name == "cumulative_prod" or char == "e":  # what halves hold the sums of
        whole = (whole != 0).astype(char)
    there = xdev.asarray(whole, device=cuda)
    for view, (more, options) in itertools.product(VIEWS.values(), CASES[name]):
        x, own = view(there), view(whole)
        pairs = ((x, x[:]), (own, own)) if name in SEQUENCES else (x, own)
        made, expected = (getattr(xdev, name)(x, *more, **options) for x in pairs)
        assert made.dtype == expected.dtype
        np.testing.assert_array_equal(xdev.to_numpy(made), expected)


@pytest.mark.parametrize("char", "?beidD")
def test_elements_are_taken_along_an_axis(device, char):
    whole = sample((6, 5, 8), char)
    there, rng = xdev.asarray(whole, device=device), np.random.default_rng(6)
    for axis, kind in itertools.product((0, 1, -1), "iq"):
        counts = [3 if k == axis % 3 else n for k, n in enumerate(whole.shape)]
        at = rng.integers(-whole.shape[axis], whole.shape[axis], counts).astype(kind)
        indices = xdev.asarray(at, device=device)
        expected = np.take_along_axis(whole, at, axis)
        made = xdev.take_along_axis(there, indices, axis=axis)
        np.testing.assert_array_equal(xdev.to_numpy(made), expected, strict=True)
        made = xdev.take_along_axis(there.T, indices.T, axis=2 - axis % 3)
        np.testing.assert_array_equal(xdev.to_numpy(made), expected.T, strict=True)
    one = xdev.asarray([[[1]]], device=device)  # which broadcasts
    made = xdev.take_along_axis(there, one, axis=1)
    np.testing.assert_array_equal(xdev.to_numpy(made), whole[:, 1:2], strict=True)


@pytest.mark.parametrize("char", "fdFD")
def test_memory_may_begin_at_any_real_number(device, char):
    numbers = np.arange(41.0, dtype=char.lower())
    x, own = (
        y[1:].view(char).reshape(-1, 4)
        for y in (xdev.asarray(numbers, device=device), numbers)
    )
    indices = xdev.asarray([1, 0, 1], device=device)
    for made, expected in (
        (xdev.take(x, indices, axis=0), own[[1, 0, 1]]),
        (xdev.tril(x), np.tril(own)),
        (xdev.triu(x, k=1), np.triu(own, 1)),
        (xdev.concat([x, x]), np.concat([own, own])),
        (xdev.stack([x, x], axis=1), np.stack([own, own], axis=1)),
        (xdev.roll(x, 1, axis=0), np.roll(own, 1, 0)),
        (xdev.nonzero(x)[1], np.nonzero(own)[1]),
    ):
        np.testing.assert_array_equal(xdev.to_numpy(made), expected, strict=True)


@pytest.mark.parametrize("shape", [SMALL, LARGE], ids=["small", "large"])
@pytest.mark.parametrize("char", CHARS)
def test_filled_and_copied_arrays_are_numpys(device, shape, char):
    dtype, where = np.dtype(char).type, {"device": device}
    for value in {"f": (0.5, -0.0, 0), "F": (1 - 0j, -0.0), "d": (-0.0,)}.get(
        char, (1, 0)
    ):
        made = xdev.full(shape, value, dtype=dtype, **where)
        assert xdev.to_numpy(made).tobytes() == np.full(shape, value, dtype).tobytes()
    assert (xdev.to_numpy(xdev.ones(shape, dtype=dtype, **where)) == 1).all()
    whole = sample(shape, char)
    for view in VIEWS.values():
        there = view(xdev.asarray(whole, device=device))
        copy = xdev.asarray(there, copy=True)
        np.testing.assert_array_equal(xdev.to_numpy(copy), view(whole), strict=True)
        assert not np.shares_memory(xdev.to_numpy(copy), whole)
    for x, own in zip(
        xdev.meshgrid(there[0], there[:, 0]),
        np.meshgrid(view(whole)[0], view(whole)[:, 0]),
        strict=True,
    ):
        np.testing.assert_array_equal(xdev.to_numpy(x), own, strict=True)
