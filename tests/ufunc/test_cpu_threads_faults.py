"""Floating-point errors of calls in several threads: told of once."""

import warnings

import numpy as np
import pytest

import xdev

pytestmark = pytest.mark.usefixtures("several_threads")


def quotient(x, y):
    return x / y


X = np.ones(40_000)


def divided(y):
    f = xdev.vectorize(quotient)
    for _ in range(3):
        f(X, X)  # until it is spread
    return f(X, y)


def test_floating_point_errors_are_told_once_with_the_users_line():
    y = X.copy()
    y[::7] = 0
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert np.isinf(divided(y)).sum() == len(y[::7])

    assert [str(w.message) for w in told] == [
        "divide by zero encountered in xdev:quotient"
    ]
    assert told[0].filename == __file__


@pytest.mark.parametrize("setting", ["ignore", "warn", "raise", "call", "print", "log"])
def test_errstate_decides_what_is_told(setting, capfd):
    y = X.copy()
    y[20_000] = 0
    told = []

    class Log:
        def write(self, text):
            told.append(text)

    words = "divide by zero encountered in xdev:quotient"
    call = {"call": lambda *words: told.append(words), "log": Log()}.get(setting)
    with np.errstate(divide=setting, call=call):
        if setting == "raise":
            with pytest.raises(FloatingPointError, match=words):
                divided(y)
        elif setting == "warn":
            with pytest.warns(RuntimeWarning, match=words):
                divided(y)
        else:
            divided(y)
    expected = {"call": [("divide by zero", 1)], "log": [f"Warning: {words}\n"]}
    assert told == expected.get(setting, [])
    printed = [f"Warning: {words}"] if setting == "print" else []
    assert capfd.readouterr().err.splitlines() == printed
