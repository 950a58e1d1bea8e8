"""How many arguments, and an out by position, on every device."""

import numpy as np
import pytest

import xdev


@xdev.vectorize
def double(x):
    return x + x


@xdev.vectorize
def plus(x, y):
    return x + y


def test_large_results_of_methods_are_counted():
    x = np.ones((100, 120))
    before = xdev.memory.allocated("cpu")

    pairs, sums = plus.outer(x[0], x), plus.accumulate(x)

    assert xdev.memory.allocated("cpu") - before >= pairs.nbytes + sums.nbytes
    np.testing.assert_array_equal(pairs, np.add.outer(x[0], x))
    np.testing.assert_array_equal(sums, np.add.accumulate(x))


@pytest.mark.parametrize(
    "x", [np.ones((300, 400)).T, np.ones((20, 30, 40)).swapaxes(0, 1)]
)
def test_large_results_in_any_layout_can_be_freed(x):
    made = double(x)
    before = xdev.memory.allocated("cpu")

    xdev.memory.free(made)

    assert xdev.memory.allocated("cpu") <= before - x.nbytes


FUNCTIONS = {
    1: lambda a: a + 1,
    2: lambda a, b: a + b,
    3: lambda a, b, c: a * b + c,
    4: lambda a, b, c, d: a * b + c * d,
}


@pytest.mark.parametrize("nin", FUNCTIONS)
@pytest.mark.parametrize("shape", [(5,), (4, 6)])
def test_an_output_may_follow_the_inputs(device, nin, shape):
    f = xdev.vectorize(FUNCTIONS[nin])
    x = np.arange(np.prod(shape), dtype="f4").reshape(shape)
    there = xdev.asarray(x, device=device)
    for step in (1, 2, 1):  # from the second time by the quick ways
        out = xdev.zeros_like(there)[::step]
        inputs = [there[::step]] * nin

        assert f(*inputs, out) is out
        expected = FUNCTIONS[nin](*[x[::step]] * nin)
        np.testing.assert_array_equal(xdev.to_numpy(out), expected)


def test_several_outputs_may_follow_the_inputs(device):
    f = xdev.vectorize(lambda a, b: (a + b, a - b))
    x = xdev.asarray(np.arange(4.0), device=device)
    for _ in range(2):
        one, two = xdev.zeros_like(x), xdev.zeros_like(x)

        made = f(x, 1.0, one, two)
        assert made[0] is one
        assert made[1] is two
        first, second = f(x, 1.0, one)  # and NumPy makes the others
        assert first is one
        assert xdev.to_numpy(two).tolist() == [-1, 0, 1, 2]
        np.testing.assert_array_equal(xdev.to_numpy(second), xdev.to_numpy(two))
