"""Plain functions that functions of ``@vectorize`` call compute as these do."""

import gc
import textwrap
import weakref

import numpy as np
import pytest

import xdev
import xdev as xp

SCALE = 3


def doubled(x):
    return x * 2


def scaled(x, y=SCALE):
    return xp.maximum(doubled(x) + y, x)


def sum_and_difference(x, y):
    return x + y, x - y


def power(x, k=2):
    return x**k


@xdev.vectorize
def helped(x):
    return scaled(x)


@xdev.vectorize
def product(x, y):
    above, below = sum_and_difference(x, y)
    return above * below


@xdev.vectorize
def by_keyword(x):
    return power(x, k=3) + power(x)


@xdev.vectorize
def of_a_lambda(x):
    successor = lambda y: y + 1  # noqa: E731
    return successor(x)


def blended(x, above=1, below=2, shift=SCALE):
    return x * above + below + shift


@xdev.vectorize
def halves(x):
    return blended(x, shift=x) // 2 + blended(above=x, x=x) // 2


def number():
    return SCALE


def fraction():
    return 1 / 8


@xdev.vectorize
def of_constants(x):
    return (x + number()) // 2 * x - number() % 2


@xdev.vectorize
def of_a_fraction(x):
    return x * fraction()


@xdev.vectorize(["float64(float64)"])
def with_a_signature(x):
    return doubled(x)


def closed_over(factor):
    def inner(x):
        return x * factor

    return xdev.vectorize(lambda x: inner(x) + 1)


@pytest.mark.parametrize("dtype", ["u1", "f4"])  # in which 64 bits would show
@pytest.mark.parametrize(
    ("function", "numpys"),
    [
        (helped, lambda x: np.maximum(x * 2 + SCALE, x)),
        (by_keyword, lambda x: x**3 + x**2),
        (halves, lambda x: (x + 2 + x) // 2 + (x * x + 2 + SCALE) // 2),
        (of_constants, lambda x: (x + SCALE) // 2 * x - SCALE % 2),
        (of_a_fraction, lambda x: x * 0.125),
        (of_a_lambda, lambda x: x + 1),
        (with_a_signature, lambda x: x.astype("f8") * 2),
        (closed_over(3), lambda x: x * 3 + 1),
    ],
)
def test_a_plain_function_has_numpys_dtypes(device, function, numpys, dtype):
    x = np.array([1, 7, 200 if dtype == "u1" else 5], dtype)

    found = function(xdev.asarray(x, device=device))

    np.testing.assert_array_equal(xdev.to_numpy(found), numpys(x), strict=True)


def test_several_results_are_a_tuple(device):
    x, y = np.array([5, 7], "i4"), np.array([3, 9], "i4")
    found = product(xdev.asarray(x, device=device), xdev.asarray(y, device=device))
    np.testing.assert_array_equal(xdev.to_numpy(found), (x + y) * (x - y), strict=True)


def itself(x):
    return itself(x - 1) if x > 0 else x


def raising(x):
    if x < 0:
        raise ValueError
    return x


def of_any(*args):
    return args[0]


@pytest.mark.parametrize("dtype", ["u1", "f8"])
@pytest.mark.parametrize(
    ("inner", "words"),
    [
        (of_any, "a ufunc calls of_any, which may have positional parameters alone"),
        (itself, "itself calls itself: write the recursion as a loop"),
        (raising, "raising raises, which a ufunc cannot do per element"),
    ],
)
def test_what_a_ufunc_may_not_do_a_plain_function_may_not(dtype, inner, words):
    function = xdev.vectorize(lambda x: inner(x) + x)
    with pytest.raises(TypeError, match=words):
        function(np.ones(2, dtype))


def test_a_plain_function_that_numba_was_told_of_is_numbas():
    extending = pytest.importorskip("numba.extending")

    def told(x):
        return x

    @extending.overload(told)
    def _(x):  # noqa: ARG001 - Numba looks at the name
        return lambda x: x + 41

    function = xdev.vectorize(lambda x: told(x) + 1)
    assert function(np.ones(1))[0] == 43


def test_an_edit_of_a_plain_function_is_seen(tmp_path, monkeypatch):
    monkeypatch.setenv("XDEV_CACHE_DIR", str(tmp_path))
    for number in (2, 5):
        path = tmp_path / f"version{number}.py"
        path.write_text(
            textwrap.dedent(f"""
                import xdev
                def inner(x):
                    return x * {number}
                @xdev.vectorize
                def outer(x):
                    return inner(x)
            """)
        )
        module = {"__name__": "edited"}
        exec(compile(path.read_text(), str(path), "exec"), module)  # noqa: S102
        x = np.array([1, 200], "u1")
        np.testing.assert_array_equal(module["outer"](x), x * number, strict=True)


@pytest.mark.parametrize("inner", [lambda _: 2, lambda array: array])
def test_a_ufunc_that_is_gone_keeps_no_plain_function(inner):
    def scaled(outside):
        def called(x):
            return x * outside

        def calling(x):
            return called(x) + 1

        try:
            xdev.vectorize(calling)(np.ones(2))
        except TypeError as error:
            assert "reads the array" in str(error)  # noqa: PT017 - one of the two
        return weakref.ref(called)

    found = scaled(inner(np.ones(2)))
    gc.collect()
    assert found() is None
