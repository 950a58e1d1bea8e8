"""``assert_allclose`` and ``assert_array_equal`` for arrays on any device."""

import numpy as np
import pytest

import xdev
from xdev.testing import assert_allclose, assert_array_equal


def test_equal_arrays_pass_whatever_the_devices(device):
    host = np.array([[1.0, np.nan], [np.inf, -0.0]])
    x = xdev.to_device(host, device)

    for one, other in ((x, host), (host, x), (x, x), (x, host.tolist())):
        assert_allclose(one, other)
        assert_array_equal(one, other)
    assert_allclose(x[0, 0], 1.0 + 1e-9)
    assert_array_equal(xdev.ones(3, device=device), 1)


@pytest.mark.parametrize("assertion", [assert_allclose, assert_array_equal])
def test_the_error_names_the_first_index_and_what_is_there(device, assertion):
    x = xdev.asarray([[1.0, 2.0], [3.0, 4.0]], device=device)

    with pytest.raises(AssertionError) as caught:
        assertion(x, np.array([[1.0, 2.5], [3.5, 4.0]]), err_msg="of the wave")

    text = str(caught.value)
    assert text.startswith(
        f"first difference at [0, 1]: 2.0 on {xdev.device_of(x)}, 2.5 is desired "
        f"(2 of 4 differ)\n"
    )
    assert "of the wave" in text


def test_tolerances_shapes_nan_and_dtypes_are_numpys(device):
    x = xdev.asarray([1.0, np.nan], device=device)

    assert_allclose(x, [1.05, np.nan], rtol=0.1)
    assert_allclose(x, [1.05, np.nan], rtol=0, atol=0.1)
    with pytest.raises(AssertionError, match=r"first difference at \[1\]"):
        assert_allclose(x, [1.0, np.nan], equal_nan=False)
    with pytest.raises(AssertionError, match="shape"):
        assert_allclose(x, xdev.ones(3, device=device))
    with pytest.raises(AssertionError, match="dtype"):
        assert_array_equal(x, np.array([1, np.nan], np.float32), strict=True)
    with pytest.raises(AssertionError, match="True on"):
        assert_array_equal(xdev.asarray([True], device=device), [False])
