"""Wrong calls and operands: refused with a way out, and nothing is written."""

import functools
import itertools
import warnings

import numpy as np
import pytest
from running import add, dot, lending, locked

import xdev

single = xdev.vectorize(["float32(float32, float32)"])(lambda x, y: x + y)
both = xdev.vectorize(lambda x: (x + 1, x - 1))
shifted = xdev.vectorize(lambda x, y=1: x - y)


@xdev.vectorize
def less(x, y):
    return x < y


@xdev.vectorize
def attribute(x):
    y = x + 1
    return y.nothing


@pytest.fixture
def x(device):
    return xdev.asarray(np.arange(6, dtype="f4"), device=device)


@pytest.mark.parametrize("warm", [False, True])
@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (add, TypeError, r"add\(\) takes x, y, then out, .*: it got 1 pos"),
        (lambda _: shifted(), TypeError, "takes x, .*=..., then out, .*: it got 0 pos"),
        (lambda x: add(x, y=x), TypeError, "no keyword 'y'; .*; positionally go x, y"),
        (lambda x: add(x, x, x, x), TypeError, "add"),
        (lambda x: add(x, x[:4]), ValueError, "broadcast"),
        (
            lambda x: add(x, x, out=xdev.empty_like(x[:4])),
            ValueError,
            r"out has shape \(4,\), .* \(6,\)|\(4,\): make .* out= has the result",
        ),
        (lambda x: add(x, x, out=xdev.astype(x, "int32")), TypeError, "(?i)out|cast"),
        (lambda x: add(x, x, out=(x, x)), ValueError, "1 outputs, but out has 2"),
        (
            lambda x: add(x, x, out=[0.0]),
            TypeError,
            r"array o(f the inputs'|n the) device|not an array but list",
        ),
        (lambda x: add(x, x, x, out=x), TypeError, "out once"),
        (lambda x: both(x, out=x), TypeError, "2 outputs, but out has 1"),
        (lambda x: add(x, x, nowhere=1), TypeError, "no keyword 'nowhere'; valid are"),
        (lambda x: add(x, x, dtype="floot"), TypeError, "floot"),
        (lambda x: add(x, x, casting="sometimes"), (TypeError, ValueError), "casting"),
        (lambda x: add(x, x, order="Z"), (TypeError, ValueError), "order"),
        (lambda x: add(x, "a"), TypeError, "y is not an array but str: pass"),
        (lambda x: add(x, None), TypeError, "not an array but NoneType"),
        (lambda x: add(x, object()), TypeError, "not an array but object"),
        (lambda x: single(xdev.astype(x, "float64"), x), TypeError, "no signature"),
        (lambda x: single(x, 1j), TypeError, "no signature|kind"),
        (both.reduce, ValueError, "needs a function of two arguments"),
        (both.accumulate, ValueError, "needs a function of two arguments"),
        (attribute, TypeError, r"(?s)float32.*return y\.nothing"),
    ],
)
def test_wrong_calls_write_nothing(x, call, error, words, warm):
    before = xdev.to_numpy(x).copy()
    if warm:  # refusals of the quick ways, too
        add(x, x)
        add(x, x, out=xdev.empty_like(x))
        both(x)
        single(x, x)

    with pytest.raises(error, match=words):
        call(x)

    np.testing.assert_array_equal(xdev.to_numpy(x), before)


TOO_LARGE = {
    "add: y is 300, which uint8": lambda u: add(u, 300),
    "add: y is -1, which uint8": lambda u: add(u, -1, out=u),
    "y is 301, which uint8 .* another dtype .*dtype=": lambda u: add(u, 301, dtype="B"),
    "less: y is -1, which uint8": lambda u: less(u, -1),
    r"add\.at: y is 300, which uint8": lambda u: add.at(u, [0], 300),
    r"add\.reduce: initial is 300, which uint8": lambda u: add.reduce(u, initial=300),
    "add: y is 1,180,.* which uint8 .* fits": lambda u: add(u, 2**70),
    "y is an int of 3,322 bits.* fits": lambda u: add(xdev.astype(u, "f4"), 10**1000),
}


@pytest.mark.parametrize("words", TOO_LARGE)
def test_an_int_that_does_not_fit_is_named_with_a_way_out(device, words):
    u = xdev.asarray(np.arange(6, dtype="u1"), device=device)
    for warm in (lambda: add(u, 3), lambda: add(u, 3, out=u), lambda: less(u, 3)):
        warm()
        warm()  # what the quick ways refuse, too
    before = xdev.to_numpy(u).copy()

    with pytest.raises(OverflowError, match=words) as caught:
        TOO_LARGE[words](u)

    assert "hold: pass a number that fits" in str(caught.value)
    np.testing.assert_array_equal(xdev.to_numpy(u), before)


@pytest.mark.parametrize("size", [6, 120_000])
@pytest.mark.parametrize("out", ["left out", None, 0])
def test_elements_that_none_writes_are_told_as_numpy_tells_them(device, size, out):
    x = xdev.asarray(np.arange(float(size)), device=device)
    keywords = {"where": x > 3}
    if out != "left out":
        keywords["out"] = out if out is None else xdev.zeros_like(x)
    with warnings.catch_warnings(action="ignore"):  # a compiler's own
        add(x, 1, **keywords)
    with warnings.catch_warnings(record=True, action="always") as caught:
        add(x, 1, **keywords)
    assert [w.filename for w in caught] == [__file__] * (out == "left out")
    assert all("'where' used without 'out'" in str(w.message) for w in caught)


DTYPES = {
    "datetime64": np.array(["2020-01-01"] * 6, "M8[D]"),
    "'a'": np.zeros(6, [("a", "f4"), ("b", "i4")]),
    "object": np.array([1, None] * 3),
    "<U1": np.array(["a"] * 6),
    "float128|longdouble": np.ones(6, "g"),
    "StringDType": np.array(["a"] * 6, np.dtypes.StringDType()),
}


@pytest.mark.skipif(np.dtype("g") == "d", reason="long double is double here")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "call",
    [
        lambda x, _: add(x, x),
        lambda x, _: add(2.5, x),
        single,
        lambda x, out: add(x, out, out=out),
        lambda x, out: add(out, 1, out=out, dtype=x.dtype),
        lambda x, _: add.reduce(x),
        lambda x, _: add.accumulate(x),
        lambda x, _: add.reduceat(x, [0, 2]),
        add.outer,
        lambda x, _: add.at(x, [0], 1),
        lambda x, out: add.at(out, [0], x[:1]),
    ],
)
def test_dtypes_that_are_no_numbers_are_refused(dtype, call):
    x, out = DTYPES[dtype], np.zeros(6, "f4")
    before = x.copy()

    for _ in range(2):
        with pytest.raises(TypeError, match=rf"(?s){dtype}.*is not supported; use"):
            call(x, out)
    assert not out.any()
    np.testing.assert_array_equal(x, before)


def test_no_result_dtype_depends_on_earlier_calls():
    for order in itertools.permutations("bfD", 2):
        f = xdev.vectorize(lambda x, y: x + y)
        for one, other in (order, *itertools.product(order, order)):
            for _ in range(2):
                dtype = f(np.ones(2, one), np.ones(2, other)).dtype
                assert dtype == np.add(np.ones(2, one), np.ones(2, other)).dtype


@pytest.mark.parametrize("values", [[1.0, 2.0], (1.0, 2.0)])
def test_a_list_beside_an_array_on_a_device_is_told_the_call_that_works(values):
    there = xdev.asarray([1.0, 2.0], device="fake:1")

    @xdev.kernel
    def copy(i, x, y):
        y[i] = x[i]

    for call, args in (
        (add, (values, there)),
        (add, (there, values)),
        (dot, (values, there)),
        (copy[2], (values, there)),
    ):
        with pytest.raises(TypeError, match="beside an array on fake:1") as caught:
            call(*args)
        advice = str(caught.value).rpartition("pass ")[2]
        made = eval(advice, {"xdev": xdev, "x": values, "y": values})  # noqa: S307 - ours
        assert xdev.device_of(made) == "fake:1"
        call(*(made if x is values else x for x in args))


@pytest.mark.parametrize("kind", [np.ndarray, type(xdev.ones(1, device="fake"))])
def test_a_class_is_named_where_an_array_belongs(device, kind):
    x = xdev.ones(3, device=device)
    for call, label in (
        (lambda: add(kind, 1.0), "add: x"),
        (lambda: add(x, x, out=(kind,)), "add: out="),
        (lambda: dot(x, kind), "dot: y"),
        (lambda: dot(x, x, kind), "dot: out="),
        (lambda: add.reduce(x, out=kind), "add.reduce: out="),
        (lambda: add.reduceat(kind, [0]), "add.reduceat: array"),
        (lambda: add.outer(x, kind), "add.outer: b"),
        (lambda: add.at(kind, [0], 1), "add.at: a"),
    ):
        text = f"{label} is not an array but the class {kind.__name__}: pass an obj"
        with pytest.raises(TypeError, match=text):
            call()
    np.testing.assert_array_equal(xdev.to_numpy(x), 1)


@pytest.mark.parametrize("function", [add, dot])
def test_another_librarys_array_is_told_the_device_of_the_others(function):
    strict = pytest.importorskip("array_api_strict").asarray([1.0, 2.0])
    there = xdev.ones(2, device="fake:1")
    for args, device in (
        ((strict, strict), "cpu"),
        ((strict, np.ones(2)), "cpu"),
        ((strict, there), "fake:1"),
        ((there, strict), "fake:1"),
    ):
        with pytest.raises(TypeError, match=rf"xdev\.to_device\(\w, '{device}'\)"):
            function(*args)
    assert function(xdev.to_device(strict, "fake:1"), there).device == "fake:1"


def lender(values):
    """Return memory of another library's, by NumPy's protocol and DLPack, as Warp's."""
    dlpack = "__dlpack__", "__dlpack_device__"
    return lending(values, "__array_interface__", *dlpack)


@xdev.kernel
def scale(i, x, out):
    out[i] = 2 * x[i]


@pytest.mark.parametrize("x", [np.ones(3), lender(np.ones(3))])
def test_what_lends_memory_is_written_in_place(x):
    memory, total = np.zeros(3), np.zeros(())
    out, fold = lender(memory), lender(total)

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


def test_what_lends_memory_to_read_is_not_written():
    memory = locked(np.zeros(3))
    for call, *args in ((add, 1.0, 1.0), (scale[3], np.ones(3))):
        with pytest.raises((TypeError, ValueError), match="read-only"):
            call(*args, lender(memory))


def doubled(function):
    @functools.wraps(function)
    def twice(*args):
        return 2 * function(*args)

    return twice


@pytest.mark.parametrize("decorate", [staticmethod, functools.lru_cache])
@pytest.mark.parametrize(
    ("decorator", "function"),
    [
        (xdev.vectorize, add.__wrapped__),
        (xdev.guvectorize("(n),(n)->()"), dot.__wrapped__),
        (xdev.kernel, scale.__wrapped__),
    ],
)
def test_what_another_decorator_made_is_not_undone(decorator, function, decorate):
    with pytest.raises(TypeError, match="needs "):
        decorator(decorate(function))


def test_what_takes_any_number_of_arguments_is_not_compiled():
    with pytest.raises(TypeError, match="cannot compile"):
        xdev.vectorize(doubled(lambda x: x + 1))(1.0)


@pytest.mark.parametrize("other", [dot, scale])
def test_no_ufunc_is_made_of_what_is_for_arrays(other):
    with pytest.raises(TypeError, match="vectorize needs"):
        xdev.vectorize(other)


def test_an_int_beyond_64_bits_is_refused_whatever_was_called_before():
    for warm in (False, True):
        plus, negative = xdev.vectorize(add.__wrapped__), xdev.vectorize(lambda x: -x)
        if warm:
            plus(1, 1), plus(1, 2.5), negative(1)
        for big in (2**63, -(2**63) - 1, 2**70):
            for call, *args in ((plus, big, 1), (plus, big, 2.5), (negative, big)):
                with pytest.raises(OverflowError, match="which int64 does not hold"):
                    call(*args)


def test_arrays_of_two_devices_are_named_as_the_parameters_are():
    function = xdev.vectorize(lambda left, right: left + right)
    with pytest.raises(xdev.DeviceMismatchError, match=r"right \(.* is on cpu, left "):
        function(xdev.ones(3, device="fake"), np.ones(3))
