"""What is no operand of a ufunc is refused by the argument's name, with what works."""

import numpy as np
import pytest

import xdev

FAKE = type(xdev.ones(1, device="fake"))


@xdev.vectorize
def add(x, y):
    return x + y


@xdev.vectorize
def half(x):
    return x / 2


@xdev.guvectorize("(n),(n)->()")
def dot(a, b, out):
    out[0] = 0
    for i in range(a.shape[0]):
        out[0] += a[i] * b[i]


@pytest.mark.parametrize("kind", [np.ndarray, FAKE, int])
@pytest.mark.parametrize("warm", [False, True])
def test_a_class_is_named_where_an_array_belongs(device, kind, warm):
    x = xdev.ones(3, device=device)
    if warm:
        add(x, x, out=xdev.empty_like(x))
        dot(x, x)
    for call, label in (
        (lambda: add(kind, 1.0), "add: x"),
        (lambda: add(x, kind), "add: y"),
        (lambda: add(x, x, out=kind), "add: out="),
        (lambda: add(x, x, kind), "add: out="),
        (lambda: add(x, x, out=(kind,)), "add: out="),
        (lambda: dot(x, kind), "dot: b"),
        (lambda: dot(x, x, out=kind), "dot: out="),
        (lambda: dot(x, x, kind), "dot: out="),
        (lambda: add.reduce(kind), "add.reduce: array"),
        (lambda: add.reduce(x, out=kind), "add.reduce: out="),
        (lambda: add.accumulate(kind), "add.accumulate: array"),
        (lambda: add.reduceat(kind, [0]), "add.reduceat: array"),
        (lambda: add.outer(x, kind), "add.outer: b"),
        (lambda: half.at(kind, [0]), "half.at: a"),
    ):
        text = f"{label} is not an array but the class {kind.__name__}: pass an obj"
        with pytest.raises(TypeError, match=text):
            call()
    np.testing.assert_array_equal(xdev.to_numpy(x), 1)


@pytest.mark.parametrize("function", [add, dot])
def test_another_librarys_array_is_told_the_device_of_the_others(function):
    strict = pytest.importorskip("array_api_strict").asarray([1.0, 2.0])
    for other in (strict, np.ones(2)):
        with pytest.raises(TypeError, match=r"xdev\.to_device\(\w, 'cpu'\)"):
            function(strict, other)
    there = xdev.ones(2, device="fake:1")
    for args in ((strict, there), (there, strict)):
        with pytest.raises(TypeError, match=r"xdev\.to_device\(\w, 'fake:1'\)"):
            function(*args)
    assert function(xdev.to_device(strict, "fake:1"), there).device == "fake:1"


@pytest.mark.parametrize("function", [add, dot])
def test_an_out_that_is_a_list_is_told_what_is_one(device, function):
    x = xdev.ones(2, device=device)
    with pytest.raises(TypeError, match=r"array o(f the inputs'|n the) device"):
        function(x, x, out=[1, 2])
