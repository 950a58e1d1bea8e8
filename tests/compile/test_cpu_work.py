"""How much work a function is."""

import math

import numba
import pytest

from xdev.compile import cpu


@pytest.mark.parametrize(
    ("function", "least", "most"),
    [
        (lambda x: -x, 1, 3),
        (lambda x: ((2 * x - 1) * x + 3) * x, 4, 10),
        (lambda x: x if x > 2 else 3 * x, 2, 6),
        (lambda x: 1 / x, 1, 3),
        (lambda x: math.sqrt(x) / x, 2, 6),
        (lambda x: math.sin(x), 100, 110),  # noqa: PLW0108
        (lambda x: math.lgamma(x) + x, 100, 110),
    ],
)
def test_amounts_of_work(function, least, most):
    jitted = numba.njit(error_model="numpy")(function)
    jitted.compile((numba.float64,))
    (compiled,) = jitted.overloads.values()

    assert least <= cpu.work_of(compiled).amount <= most
