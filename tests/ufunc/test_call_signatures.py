"""``dtype=`` and ``signature=`` of a call say what is computed in, as NumPy's do."""

import inspect
import itertools

import numpy as np
import pytest
from running import add, called, same

import xdev

less = xdev.vectorize(lambda x, y: x < y)
parts = xdev.vectorize(lambda x: (x + 1, x > 1))
explicit = xdev.vectorize(["int32(int32, int32)", "float64(float64, float64)"])(
    lambda x, y: x + y
)


X = np.arange(4, dtype="f")
FORMS = {
    "signature": lambda text: {"signature": text},
    "sig": lambda text: {"sig": text},
    "dtypes": lambda text: {
        "signature": tuple(np.dtype(c) for c in text.replace("->", ""))
    },
}


@pytest.fixture
def x(device):
    return xdev.asarray(X, device=device)


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("text", ["ff->f", "dd->d", "DD->D"])
def test_a_signature_says_what_is_computed_in(x, form, text):
    same(add(x, 1.5, **form(text)), np.add(X, 1.5, **form(text)))


@pytest.mark.parametrize(
    "keywords",
    [
        {"signature": (None, None, "d")},
        {"signature": (None, "d", None)},
        {"signature": ("d", "d", None)},
        {"dtype": "d"},
        {"signature": None, "dtype": np.float64},
    ],
    ids=str,
)
def test_none_is_any(x, keywords):
    same(add(x, x, **keywords), (X + X).astype("d"))


@pytest.mark.parametrize(
    ("char", "number", "asked"),
    [("f", 0.1, "d"), ("e", 0.1, "f"), ("B", 3000, "q"), ("f", 0.1, "D")],
)
def test_numbers_are_of_the_dtype_that_is_asked_for(device, char, number, asked):
    x = np.arange(4, dtype=char)
    made = called(device, add, x, number, dtype=asked)
    same(made, np.add(x, number, dtype=asked))


def test_results_keep_their_kind_and_outs_are_written_in_place(x):
    for keywords in ({"dtype": "?"}, {"signature": (None, None, "?")}):
        same(less(x, 2, **keywords), np.less(X, 2, dtype="?"))
    same(parts(x, signature="d->d?"), (X.astype("d") + 1, X > 1))
    out = xdev.zeros_like(x)
    assert add(x, x, out=out, signature="dd->d") is out
    same(out, X + X)


def test_explicit_signatures_are_chosen_from(x):
    whole = xdev.astype(x, "int32")

    assert explicit(whole, whole).dtype == xdev.int32
    assert explicit(whole, whole, signature="dd->d").dtype == xdev.float64
    with pytest.raises(TypeError, match="no typing with a result of float32"):
        explicit(whole, whole, signature="ff->f")


@pytest.mark.parametrize(
    ("keywords", "words"),
    [
        ({"signature": "f"}, "does not fit"),
        ({"signature": 3}, "does not fit"),
        ({"signature": ["f", "f", "f"]}, "does not fit"),
        ({"signature": "ff->ff"}, "no typing with a result of float32, float32"),
        ({"signature": "ff->d"}, "no typing with a result of float64: of .float32"),
        ({"signature": "%%->f"}, "(?i)data type"),
        ({"signature": "MM->M"}, "datetime64.* is not supported"),
        ({"signature": "ii->i"}, "cast.* casting='unsafe'|pass another casting"),
        ({"signature": "ff->f", "dtype": "f"}, "one of dtype, signature"),
        ({"signature": "ff->f", "sig": "ff->f"}, "one of signature, sig"),
    ],
    ids=str,
)
def test_what_does_not_fit_writes_nothing(x, keywords, words):
    out = xdev.zeros_like(x)

    with pytest.raises(TypeError, match=words):
        add(x, x, out=out, **keywords)
    assert not xdev.to_numpy(out).any()


@pytest.mark.parametrize(
    "signature", ["ff", "f->f", "ff->", "", ("f", "f"), ()], ids=repr
)
def test_a_signature_of_another_length_is_a_value_error_as_numpys(x, signature):
    with pytest.raises(ValueError, match=r"typecode|of length 3"):
        np.add(1.0, 2.0, signature=signature)
    with pytest.raises(ValueError, match=r"has 2 inputs, which signature=.*'ff->f'"):
        add(x, x, signature=signature)


def test_python_numbers_are_cast_like_arrays(x):
    whole = xdev.astype(x, "int32")
    for number, casting in itertools.product((2, 2.5), ("same_kind", "unsafe")):
        keywords = {"signature": "ii->i", "casting": casting}
        if number == 2.5 and casting == "same_kind":
            with pytest.raises(TypeError, match="cast"):
                add(whole, number, **keywords)
        else:
            made = xdev.to_numpy(add(whole, number, **keywords))
            np.testing.assert_array_equal(made, X.astype("i") + 2, strict=True)


def test_the_keyword_is_in_the_signature_of_a_call():
    assert inspect.signature(add).parameters["signature"].default is None
