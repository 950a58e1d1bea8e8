"""What dtypes a vectorized function gives, by itself, by signatures, and as asked."""

import math
import os

import numba
import numpy as np
import pytest
from numba import types
from running import add, called, same

import xdev

DEEP = os.environ.get("HYPOTHESIS_PROFILE") == "deep"
SCALE = 2.5


def affine(a, x, y):
    z = -1.0
    return a * x + y * 3 - math.sin(x) * SCALE + math.pi * z


def int_of(x):
    count = 0
    for k in range(int(x)):
        count += k
    return count


@pytest.mark.parametrize(
    ("function", "types"),
    [
        (affine, "fff->f iii->d bef->f eee->e"),
        (lambda x: x + 1, "?->l b->b B->B f->f F->F"),
        (lambda x: x * 0.5, "?->d b->d B->d i->d e->e f->f F->F"),
        (lambda x: x / 2, "b->d L->d e->e f->f D->D"),
        (lambda x: x > 1, "b->? L->? f->?"),
        (lambda x: abs(x) + 0, "b->b f->f F->f D->d"),
        (lambda x: x.real, "F->f D->d"),
        (lambda x: x * 1j, "f->F d->D b->D e->F"),
        (lambda x: x**2, "b->b f->f D->D"),
        (lambda x: max(x, 0), "b->b f->f d->d"),
        (lambda x: x if x > 0 else -1, "b->b f->f d->d"),
        (lambda x: 1 if x > 0 else -1, "B->l e->l f->l d->l"),
        (lambda x: 1.0 if x > 0 else 0, "B->d e->d f->d d->d"),
        (lambda x: 1j if x else 0, "B->D f->D D->D"),
        (lambda x: x if x > 0 else 0.5, "b->d e->e f->f d->d"),
        (int_of, "B->l f->l d->l"),
        (lambda x: np.int64(x) + 1, "B->l f->l d->l"),
        (lambda x: np.float64(x) + 1, "B->d e->d f->d"),
        (lambda x: -np.int8(x), "B->b h->h"),
        (lambda x: math.floor(x) + 0, "f->l d->l B->l"),
        (lambda x: (x << 1) & 7, "b->b L->L"),
        (lambda x: not x, "f->? b->?"),
        (lambda x: float(x) + 1, "?->d b->d"),
        (lambda x: complex(x) + 1, "?->D f->D"),
    ],
)
def test_kinds_decide(function, types):
    f = xdev.vectorize(function)
    for one in types.split() if DEEP else types.split()[:1] + types.split()[-1:]:
        inputs = [np.ones(2, char) for char in one[:-3]]
        assert f(*inputs).dtype.char == one[-1], one


def test_literals_and_indices_leave_float32_in_float32():
    # float32 arithmetic, not float64 rounded at the end
    x = np.float32(0.1)
    third = xdev.vectorize(lambda x: x * 0.1 + 1.1 - x)
    assert third(x) == x * np.float32(0.1) + np.float32(1.1) - x
    table = (1.0, 2.0, 4.0)

    def f(x):
        total, k = x, 0
        for i in range(3):
            k = i + 0
            total += table[k]
        return total

    x = np.arange(3, dtype="f")
    np.testing.assert_array_equal(xdev.vectorize(f)(x), x + 7)


@pytest.mark.parametrize(
    "function", [lambda x: x + 3**1100 % 7, lambda x: x * 2.0**-1074]
)
def test_constants_of_large_exponents_are_as_python_has_them(function):
    np.testing.assert_array_equal(xdev.vectorize(function)(np.ones(2)), function(1.0))


def test_a_constant_that_int64_does_not_hold_is_refused():
    with pytest.raises(OverflowError):
        xdev.vectorize(lambda x: x + (1 << 2000))(np.ones(2, "l"))


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        *(((np.ones(3, t), 2), t) for t in "bef"),
        *(((np.ones(3, t), 2.5), "d" if t == "b" else t) for t in "bef"),
        ((np.ones(3, "f"), 2j), "F"),
        ((np.ones(3, "f"), np.float64(2)), "d"),
        ((np.ones(3, "f"), True), "f"),
        ((1, 2), "l"),
        ((1, 2.0), "d"),
    ],
)
def test_python_numbers_are_weak(args, expected):
    assert xdev.vectorize(lambda x, y: x + y)(*args).dtype == expected
    assert np.add(*args).dtype == expected  # the law is NumPy's


def test_the_first_signature_that_fits_is_used():
    f = xdev.vectorize(
        ["int32(int32, int32)", "float32(float32, float32)", "f8(f8,f8)"]
    )(lambda x, y: x + y)

    assert f.types == ["ii->i", "ff->f", "dd->d"]
    assert f(np.int16(1), np.int32(1)).dtype == "i"
    assert f(np.ones(2, "e"), np.ones(2, "h")).dtype == "f"
    assert f(np.ones(2, "l"), np.ones(2, "h")).dtype == "d"
    with pytest.raises(TypeError, match=r"no signature takes \(complex64.*int32"):
        f(np.ones(2, "F"), 1)
    for x in (
        True,
        np.True_,
        np.ones(2, "?"),
    ):  # an int beside bools is the signature's
        assert f(x, 1).dtype == "i"
        assert f(x, 1.5).dtype == "f"
    f = xdev.vectorize(["int8(float64)"], target="cpu", nopython=True)(lambda x: x * 2)
    np.testing.assert_array_equal(f([1.4, -3.6]), np.asarray([2, -7], "i1"))


def sometimes(x):
    if x > 0:
        return x
    return None


factorial = xdev.vectorize(lambda n: 1 if n <= 1 else n * factorial(n - 1))


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (sometimes, "nothing on some path"),
        (lambda x: "a" if x else "b", "not a number"),
        (factorial, "calls itself: write the recursion as a loop"),
    ],
)
def test_what_cannot_be_typed_is_named(function, words):
    with pytest.raises(TypeError, match=words):
        xdev.vectorize(function)(np.ones(3, "f"))


# Signatures in every form that Numba's decorators take, and several results.


def both(x, y):
    return x + y, x - y


def total(x, y):
    return x + y


FORMS = [
    (both, "(f8,i8)(f8,f8)", "dd->dl"),
    (both, " ( f4, f8, ) (f8, f8)", "dd->fd"),
    (both, types.UniTuple(types.f8, 2)(types.f8, types.f8), "dd->dd"),
    (both, types.Tuple((types.f8, types.i8))(types.f8, types.f8), "dd->dl"),
    (both, "f8, f8", "dd->dd"),
    *((total, text, "ll->l") for text in ("(int64, int64)", "int64, int64")),
    (total, " int64( i8,int64, )", "ll->l"),
    (total, (types.int64, types.int64), "ll->l"),
    (total, types.int64(types.int64, types.int64), "ll->l"),
]


@pytest.mark.parametrize(("function", "signature", "typing"), FORMS)
@pytest.mark.parametrize("container", [None, list, set])
def test_signatures_are_numbas(device, function, signature, typing, container):
    if container is None and isinstance(signature, tuple):
        container = list  # a tuple is several signatures
    given = signature if container is None else container([signature])
    made = xdev.vectorize(given)(function)
    x, y = np.array([1, 5], np.int16), np.array([2, 3], np.int16)

    found = called(device, made, x, y)

    results = function(x, y) if function is both else (function(x, y),)
    expected = tuple(map(np.ndarray.astype, results, typing.partition("->")[2]))
    same(found, expected if function is both else expected[0])
    assert (made.types, made.nout) == ([typing], len(expected))
    if function is total:
        assert numba.vectorize([signature])(total).types == made.types


def test_signatures_that_do_not_fit_are_refused():
    for signature in ("(f8)", "f8", "quux", "quux(f8)", "(f8, f8)(f8)"):
        with pytest.raises(TypeError, match=r"signature|no type"):
            xdev.vectorize([signature])(total)
    for signature in ("Tuple((f8, f8))(f8)", "f8 f8", "f8(f8", "float32()", 3, ""):
        with pytest.raises(TypeError, match="is not a signature: write it"):
            xdev.vectorize([signature])(total)
    returning_nothing = "void(f8, f8)", types.void(types.f8, types.f8)
    for signature in ("f8(f8[:], f8)", *returning_nothing):
        with pytest.raises(TypeError, match="not a signature of numbers: of arrays"):
            xdev.vectorize([signature])(total)
    function = xdev.vectorize(["(f8, f8, f8)(f8, f8)"])(both)
    with pytest.raises(TypeError, match="returns 2 values, not 3"):
        function(1.0, 2.0)


# What a call asks for.

less = xdev.vectorize(lambda x, y: x < y)
parts = xdev.vectorize(lambda x: (x + 1, x > 1))
explicit = xdev.vectorize(["int32(int32, int32)", "float64(float64, float64)"])(total)
X = np.arange(4, dtype="f")


@pytest.fixture
def x(device):
    return xdev.asarray(X, device=device)


@pytest.mark.parametrize(
    "keywords",
    [
        *({"signature": text} for text in ("ff->f", "dd->d", "DD->D")),
        {"sig": "dd->d"},
        {"signature": (np.dtype("d"),) * 3},
        {"signature": (None, None, np.dtype("d"))},
        {"dtype": "d"},
        {"dtype": np.complex128},
    ],
    ids=str,
)
def test_a_signature_says_what_is_computed_in(x, keywords):
    same(add(x, 0.1, **keywords), np.add(X, 0.1, **keywords))


def test_results_keep_their_kind_and_outs_are_written_in_place(x):
    for keywords in ({"dtype": "?"}, {"signature": (None, None, "?")}):
        same(less(x, 2, **keywords), np.less(X, 2, dtype="?"))
    same(parts(x, signature="d->d?"), (X.astype("d") + 1, X > 1))
    out = xdev.zeros_like(x)
    assert add(x, x, out=out, signature="dd->d") is out
    same(out, X + X)
    bytes_ = xdev.astype(x, "uint8")
    same(add(bytes_, 3000, dtype="q"), np.add(X.astype("B"), 3000, dtype="q"))
    whole = xdev.astype(x, "int32")
    assert explicit(whole, whole).dtype == xdev.int32
    assert explicit(whole, whole, signature="dd->d").dtype == xdev.float64
    with pytest.raises(TypeError, match="no typing with a result of float32"):
        explicit(whole, whole, signature="ff->f")


@pytest.mark.parametrize(
    ("keywords", "error", "words"),
    [
        ({"signature": 3}, TypeError, "does not fit"),
        ({"signature": "ff->ff"}, TypeError, "no typing with a result of float32, flo"),
        ({"signature": "ff->d"}, TypeError, "no typing with .* float64: of .float32"),
        ({"signature": "%%->f"}, TypeError, "(?i)data type"),
        ({"signature": "MM->M"}, TypeError, "datetime64.* is not supported"),
        ({"signature": "ii->i"}, TypeError, "casting='unsafe'|or another casting"),
        ({"signature": "ff->f", "dtype": "f"}, TypeError, "one of dtype, signature"),
        ({"signature": "ff->f", "sig": "ff->f"}, TypeError, "one of signature, sig"),
        *(  # as NumPy's
            (
                {"signature": text},
                ValueError,
                r"has 2 inputs, which signature=.*'ff->f'",
            )
            for text in ("f->f", "ff->", ("f", "f"), ())
        ),
    ],
    ids=str,
)
def test_what_does_not_fit_writes_nothing(x, keywords, error, words):
    out = xdev.zeros_like(x)

    with pytest.raises(error, match=words):
        add(x, x, out=out, **keywords)
    assert not xdev.to_numpy(out).any()
    if error is ValueError:
        with pytest.raises(error):
            np.add(1.0, 2.0, **keywords)
