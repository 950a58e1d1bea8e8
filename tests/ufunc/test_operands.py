"""What is no operand of a ufunc is refused by the argument's name, with what works."""

import numpy as np
import pytest
from running import add, dot

import xdev

FAKE = type(xdev.ones(1, device="fake"))


@xdev.vectorize
def half(x):
    return x / 2


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
        (lambda: dot(x, kind), "dot: y"),
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


class Exporter:
    """Memory of another library's, by NumPy's first protocol."""

    values = np.arange(3.0)
    __array_interface__ = values.__array_interface__


class Lender:
    """Memory of another library's, by NumPy's protocol and by DLPack, as Warp's."""

    def __init__(self, values):
        self.values = values
        self.__dlpack__ = values.__dlpack__
        self.__dlpack_device__ = values.__dlpack_device__

    @property
    def __array_interface__(self):
        return self.values.__array_interface__


@pytest.mark.parametrize("make", [Exporter, lambda: Lender(np.arange(3.0))])
def test_numpys_interface_makes_an_operand(make):
    np.testing.assert_equal(add(make(), 1.0), [1, 2, 3])
    np.testing.assert_equal(add.outer(make(), [1.0]), [[1], [2], [3]])
    assert add.reduce(make()) == dot(make(), np.ones(3)) == 3


@xdev.kernel
def scale(i, x, out):
    out[i] = 2 * x[i]


@pytest.mark.parametrize("x", [np.ones(3), Lender(np.ones(3))])
def test_what_lends_memory_is_written_in_place(x):
    memory, total = np.zeros(3), np.zeros(())
    out, fold = Lender(memory), Lender(total)

    assert add(x, 1.0, out=out) is out
    assert memory.tolist() == [2, 2, 2]
    assert add(x, 2.0, out) is out
    assert memory.tolist() == [3, 3, 3]
    assert add.reduce(out, out=fold) is fold
    assert total == 9
    assert dot(out, out, out=fold) is fold
    assert total == 27
    add.at(out, [0, 0], 1.0)
    assert memory.tolist() == [5, 3, 3]
    scale[3](x, out)
    assert memory.tolist() == [2, 2, 2]


@pytest.mark.parametrize(
    "call",
    [lambda out: add(1.0, 1.0, out=out), lambda out: scale[3](np.ones(3), out)],
    ids=["ufunc", "kernel"],
)
def test_what_lends_memory_to_read_is_not_written(call):
    memory = np.zeros(3)
    memory.flags.writeable = False

    with pytest.raises((TypeError, ValueError), match="read-only"):
        call(Lender(memory))


@pytest.mark.parametrize(
    "call", [add, add.reduce, add.accumulate, lambda x, *_: add.outer(x, x)]
)
def test_lists_that_are_no_array_are_told_so(call):
    with pytest.raises(ValueError, match="inhomogeneous shape"):
        call([[1], [1, 2]], *[1] * (call is add))


@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
def test_outer_takes_no_matrices_as_numpys():
    x, y = np.matrix([[1.0, 2.0]]), np.ones(2)

    for pair in ((x, y), (y, x), (x, 2.0)):
        with pytest.raises(TypeError, match="matrix"):
            np.add.outer(*pair)
        with pytest.raises(TypeError, match=r"add.outer.*numpy.matrix.*numpy.asarray"):
            add.outer(*pair)


def test_an_int_beyond_64_bits_is_refused_whatever_was_called_before():
    for big in (2**63, -(2**63) - 1, 2**64, 2**70):
        for warm in (False, True):
            plus = xdev.vectorize(add.__wrapped__)
            negative = xdev.vectorize(lambda x: -x)
            if warm:
                plus(1, 1), plus(1, 2.5), negative(1)
            for call in (
                lambda: plus(big, 1),  # noqa: B023 - called at once
                lambda: plus(1, big),  # noqa: B023
                lambda: plus(big, 2.5),  # noqa: B023
                lambda: negative(big),  # noqa: B023
            ):
                with pytest.raises(OverflowError, match="which int64 does not hold"):
                    call()
