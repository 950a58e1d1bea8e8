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


@xdev.vectorize
def madd(x, y, z):
    return x * y + z


@pytest.mark.parametrize("f", [double, plus, madd])
def test_out_by_position_is_out_by_name(device, f):
    args = [xdev.asarray(np.arange(1.0, 6), device=device) for _ in range(f.nin)]
    wanted = f(*args)
    for _ in range(2):  # a typing's first call, and a later one
        out = xdev.zeros(5, device=device)

        assert f(*args, out) is out

        np.testing.assert_array_equal(xdev.to_numpy(out), xdev.to_numpy(wanted))


@pytest.mark.parametrize("f", [double, plus, madd])
@pytest.mark.parametrize("more", [-1, 2])
def test_a_wrong_number_of_arguments_is_refused(device, f, more):
    x = xdev.ones(5, device=device)
    f(*[x] * f.nin)

    with pytest.raises(TypeError, match=f"{f.__name__}"):
        f(*[x] * (f.nin + more))
