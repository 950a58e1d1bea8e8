"""How much work a function is, and what of it a loop over numbers does once."""

import math

import numba
import pytest

from xdev.compile import cpu

ONE, ANOTHER = numba.float32, numba.complex64


@pytest.mark.parametrize(
    ("function", "kind", "costly"),
    [
        (lambda x, a: x * math.exp(a), ONE, True),
        (lambda x, a: x + math.sinh(a), ONE, True),
        (lambda x, a: x * math.sqrt(a), ONE, True),
        (lambda x, a: x * (1 / a), ONE, True),
        (lambda x, a, b: x + a / b, ANOTHER, True),
        (lambda x, a, b: math.exp(x * a) / (a * b), ONE, False),
        (lambda x, a: math.exp(x) / a, ONE, False),
        (lambda x, a: x * a / (x + a), ANOTHER, False),
        (lambda x, a: abs(x) * abs(a) * a * a, ONE, False),
        (lambda a: math.exp(a) / 3, ONE, False),
    ],
)
def test_work_on_parameters_alone(function, kind, costly):
    jitted = numba.njit(error_model="numpy")(function)
    jitted.compile((kind,) * function.__code__.co_argcount)
    (compiled,) = jitted.overloads.values()

    assert cpu.work_of(compiled).parameters is costly


@pytest.mark.parametrize(
    ("function", "least", "most"),
    [
        (lambda x: -x, 1, 3),
        (lambda x: ((2 * x - 1) * x + 3) * x, 4, 10),
        (lambda x: x if x > 2 else 3 * x, 2, 6),
        (lambda x: 1 / x, 8, 12),
        (lambda x: math.sqrt(x) / x, 20, 40),
        (lambda x: math.sin(x), 100, 110),  # noqa: PLW0108
        (lambda x: math.lgamma(x) + x, 100, 110),
    ],
)
def test_amounts_of_work(function, least, most):
    jitted = numba.njit(error_model="numpy")(function)
    jitted.compile((numba.float64,))
    (compiled,) = jitted.overloads.values()

    assert least <= cpu.work_of(compiled).amount <= most
