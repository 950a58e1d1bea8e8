"""Large results on the CPU: from the pool, laid out as NumPy's, whatever the way."""

import numpy as np
import pytest
from running import add

import xdev

LAYOUTS = {
    "C": lambda x: x,
    "F": np.asfortranarray,
    "transposed": lambda x: np.ascontiguousarray(x.transpose(2, 0, 1)).transpose(
        1, 2, 0
    ),
    "reversed": lambda x: x[::-1],
    "every other": lambda x: np.repeat(x, 2, axis=1)[:, ::2],
}
SHAPES = [(40, 50, 60), (1, 300, 400), (300, 1, 400), (300, 400, 1)]


negative = xdev.vectorize(lambda x: -x)
both = xdev.vectorize(lambda x, y: (x + y, x - y))


def pooled():
    return xdev.memory.allocated("cpu", kind="host")


def steps(x):
    """Return the strides that matter."""
    return [step for step, n in zip(x.strides, x.shape, strict=True) if n > 1]


def check(call, expected):
    for _ in range(3):  # the first call learns, the others are short
        before = pooled()
        result = call()
        assert pooled() >= before + result.nbytes
        assert type(result) is np.ndarray
        assert result.dtype == expected.dtype
        assert steps(result) == steps(expected)
        assert np.array_equal(result, expected)
        del result
        assert pooled() == before


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("one", LAYOUTS)
@pytest.mark.parametrize("other", LAYOUTS)
def test_large_results_are_pooled_and_laid_out_as_numpys(shape, one, other):
    values = np.arange(120_000, dtype="f4").reshape(shape)
    x, y = LAYOUTS[one](values), LAYOUTS[other](values + 1)

    check(lambda: negative(x), np.negative(x))
    check(lambda: add(x, y), np.add(x, y))
    check(lambda: add(x, 3), np.add(x, 3))
    check(lambda: add(x, np.float32(3)), np.add(x, np.float32(3)))
    check(lambda: add(x, y, casting="same_kind"), np.add(x, y))
    check(lambda: add(x, y[:1]), np.add(x, y[:1]))


def test_of_several_outputs_each_is_pooled():
    x = np.ones((200, 300))
    for _ in range(3):
        before = pooled()
        results = both(x, x)
        assert pooled() >= before + 2 * x.nbytes
        assert (results[0] == 2).all()
        assert (results[1] == 0).all()
        del results


class Subclass(np.ndarray):
    """One that leaves all to NumPy."""


@pytest.mark.parametrize("size", [10, 100_000, 1_000_000])
def test_subclasses_decide_on_their_results(size):
    x = np.ones(size)
    one, out = x.view(Subclass), np.zeros(size).view(Subclass)

    for _ in range(3):
        assert type(add(one, x)) is type(add(x, one)) is type(add(one, one)) is Subclass
        assert add(x, x, out=out) is out
        assert (out == 2).all()
        assert type(add(one, x, out=np.zeros(size))) is np.ndarray
