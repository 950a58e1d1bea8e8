"""Reductions that are refused: with the way out, in the same words on every device."""

import numpy as np
import pytest

import xdev

ORDER = (
    "minus.reduce is not reorderable, so it takes one axis at a time; with "
    "@vectorize(identity=...) it takes several"
)
START = "minus.reduce: where= needs a value to start from: pass initial="
NOTHING = "minus.reduce of nothing has no identity: pass initial="


def minus(x, y):
    return x - y


REFUSED = [
    ((2, 3), {"axis": None}, ORDER),
    ((2, 3), {"axis": (0, 1)}, ORDER),
    ((2, 3), {"axis": 0, "where": True}, START),
    ((0, 3), {"axis": None, "where": True}, ORDER),
    ((0,), {}, NOTHING),
    ((0, 3), {"axis": 0}, NOTHING),
    ((3, 0), {"axis": 1}, NOTHING),
    ((0, 0), {"axis": 0}, NOTHING),
]


@pytest.mark.parametrize(("shape", "keywords", "words"), REFUSED)
def test_a_refusal_tells_the_way_out(device, shape, keywords, words):
    x = xdev.ones(shape, device=device)
    if "where" in keywords:
        keywords = {**keywords, "where": x > 0}

    with pytest.raises(ValueError) as refused:  # noqa: PT011 - the words are below
        xdev.vectorize(minus).reduce(x, **keywords)

    assert str(refused.value).startswith(words)
    assert "@vectorize(identity=...)" in str(refused.value)


@pytest.mark.parametrize(("shape", "keywords", "words"), REFUSED)
def test_cuda_has_the_words_of_the_cpu(gpu, shape, keywords, words):
    x, ufunc, told = np.ones(shape), xdev.vectorize(minus), []
    for put in (lambda x: x, gpu.array):
        if "where" in keywords:
            keywords = {**keywords, "where": put(x > 0)}
        with pytest.raises(ValueError) as refused:  # noqa: PT011
            ufunc.reduce(put(x), **keywords)
        told.append(str(refused.value))

    assert told[0] == told[1]
    assert told[0].startswith(words)


def test_no_result_needs_no_identity(gpu):
    x, ufunc = np.ones((3, 0)), xdev.vectorize(minus)
    assert ufunc.reduce(x, 0).shape == np.subtract.reduce(x, 0).shape == (0,)
    assert ufunc.reduce(gpu.array(x), 0).shape == (0,)


def test_other_errors_are_numpys():
    with pytest.raises(np.exceptions.AxisError, match="axis 7 is out of bounds"):
        xdev.vectorize(minus).reduce(np.ones(3), 7)
