"""Results of candidates: what counts as the same, and what the error says."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from xdev.errors import XdevError
from xdev.timing import ResultsDifferError, compare

x = np.linspace(-3, 3, 1001, dtype=np.float32)


def agree(a, b, rtol=None):
    calls = {"first": lambda: a, "second": lambda: b}
    compare(calls, number=1, repeat=1, rtol=rtol, device="cpu")


def changed(a, index, value):
    b = a.copy()
    b[index] = value
    return b


class Same:
    """Keys that read alike are two keys."""

    def __repr__(self):
        return "same"


ONE, OTHER = Same(), Same()


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (x, x),
        (x, np.nextafter(x, np.float32(9))),
        (x, x.astype(np.float64)),
        (np.array([np.nan, np.inf, -np.inf, 0.0]),) * 2,
        (np.array([1e8, 0.0], np.float32), np.array([1e8, 1.0], np.float32)),
        (x * 1j, x * 1j),
        ((x, 1), (x, 1)),
        (np.zeros((0, 3)), np.zeros((0, 3))),
        (None, None),
        ({"u": x, "v": (x, 3)}, {"v": (x, 3), "u": x}),
        ([[x], {"u": x[:3]}], [[x], {"u": x[:3]}]),
    ],
)
def test_these_are_the_same(a, b):
    agree(a, b)


@pytest.mark.parametrize(
    ("a", "b", "words"),
    [
        (x, changed(x, 7, 9), r"at \[7\] -2.958 against 9.0, .* 1 of 1001"),
        (x, changed(x, 7, np.nan), r"\[7\] .* nan"),
        (np.array([np.inf]), np.array([-np.inf]), "inf against -inf"),
        (np.array([2**63], np.uint64), np.array([2**63 - 1]), "9223372036854775808"),
        (np.array([True]), np.array([False]), r"at \[0\] True against False"),
        (np.array(["a"]), np.array(["b"]), "a against b"),
        (x, x[:-1], r"shape \(1001,\) against \(1000,\)"),
        (x, None, "an array of float32 against None"),
        ((x, x), (x,), r"parts \[0, 1\] against \[0\]"),
        ((x, x), (x, -x), r"in part \[1\] at \[0\]"),
        ({"u": x}, {"v": x}, "parts .*'u'.* against .*'v'"),
        ({"u": x, "v": x}, {"u": x, "v": -x}, r"in part \['v'\] at \[0\] -3.0 against"),
        ({"u": {"w": 1}}, {"u": {"w": 2}}, r"in part \['u'\]\['w'\] at \[0\] 1 "),
        ({"u": x}, x, "parts .*'u'.* against an array of float32"),
        ({ONE: x, OTHER: x}, {ONE: -x, OTHER: x}, "in part "),
    ],
)
def test_these_are_not_and_the_error_says_where(a, b, words):
    with pytest.raises(ResultsDifferError, match=words) as caught:
        agree(a, b)
    assert "'first' and 'second'" in str(caught.value)
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, XdevError)


@pytest.mark.parametrize(
    ("a", "b", "told"),
    [
        (x, x * np.float32(1.001), True),
        (x, changed(x, 7, np.nan), False),
        (np.array([0.0, 1.0]), np.array([1.0, 1.0]), False),
        (np.array([1, 2]), np.array([1, 3]), False),
        (x, x[:-1], False),
    ],
)
def test_the_error_names_rtol_where_that_helps(a, b, told):
    with pytest.raises(ResultsDifferError) as caught:
        agree(a, b)
    assert ("rtol=" in str(caught.value)) == told
    if told:
        agree(a, b, 0.01)


@given(st.floats(1e-3, 0.5), st.sampled_from([0.5, 2.0]))
def test_rtol_is_the_border(rtol, share):
    a, b = np.array([1.0, 2.0]), np.array([1.0, 2.0 * (1 + rtol * share)])
    if share < 1:
        agree(a, b, rtol)
    else:
        with pytest.raises(ResultsDifferError):
            agree(a, b, rtol)
