"""Wrong generalized ufuncs and wrong calls are refused, and write nothing."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from running import called, dot, there

import xdev


def copied(x, out):
    for i in range(x.shape[0]):
        out[i] = x[i]


def one(x):
    x[0] = 1


LAYOUTS = ["", "n->n", "(n)", "(n),->(n)", "(2n)->()", "(n?)->()", 3]
SIGNATURES = {
    7: "is not a signature",
    "void(float32[:])": "has 1 types, but",
    "float32(float32[:])": "has 1 types, but",
    "void(text[:], float32[:])": "no type 'text'",
    "void(float32[x], float32[:])": "is not a type",
    "void(float32[:)": "is not a type",
    "void(float32[:,:], float32[:])": "is an array of 1 axes",
}


@pytest.mark.parametrize(
    ("args", "options", "function", "error", "message"),
    [
        *(((x,), {}, copied, TypeError, "is not a layout of core d") for x in LAYOUTS),
        *((([x], "(n)->(n)"), {}, copied, TypeError, w) for x, w in SIGNATURES.items()),
        (("(n)->(n)",), {"target": "gpu"}, copied, ValueError, "no target 'gpu'"),
        (("(n)->(n)",), {"speed": True}, copied, TypeError, "no option 'speed'"),
        (("(n)->(n)",), {"nopython": False}, copied, TypeError, "nopython=False"),
        ((copied,), {}, None, TypeError, "needs core dimensions"),
        (("(n)->()",), {}, one, TypeError, r"1 parameters, but .* needs 2"),
    ],
)
def test_wrong_decorations_are_refused(args, options, function, error, message):
    with pytest.raises(error, match=message):
        xdev.guvectorize(*args, **options)(function)


@pytest.fixture
def pair(device):
    return there(device, np.arange(6.0).reshape(2, 3), np.arange(3.0))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x, _: dot(x), TypeError, "takes x, y, then out, .*: it got 1 pos"),
        (lambda x, y: dot(x, y, y, out=y), TypeError, "out once"),
        (lambda x, y: dot(x, y, where=True), TypeError, "has no keyword 'where'"),
        (lambda x, y: dot(x, y[:2]), ValueError, "where n is 3"),
        (lambda x, _: dot(x, 1.0), ValueError, "does not fit its core"),
        (lambda x, y: dot(x, xdev.stack([y] * 3)), ValueError, "broadcast"),
        (lambda x, y: dot(x, y, out=y), ValueError, "broadcast|shape"),
        (lambda x, y: dot(x, y, out=[0.0, 0.0]), TypeError, "."),
        (lambda x, _: dot(x, x, keepdims="no"), TypeError, "must be a bool"),
        (lambda x, _: dot(x, x, axis=5), ValueError, "axis 5 is out of bounds"),
        (lambda x, _: dot(x, x, axes=[0, 0]), TypeError, "has no keyword 'axes'"),
    ],
)
def test_wrong_calls_are_refused_and_write_nothing(pair, call, error, message):
    x, y = pair
    with pytest.raises(error, match=message):
        call(x, y)
    assert xdev.to_numpy(y).tolist() == [0, 1, 2]


@xdev.guvectorize("(n)->(m)")
def repeated(x, out):
    for i in range(out.shape[0]):
        out[i] = x[i % x.shape[0]]


def test_an_output_that_is_never_written_is_refused():
    def total(x, out, rest):
        s = 0.0
        for k in range(x.size):
            s += x[k]
        rest += s
        out = s  # noqa: F841 - the fault

    words = r"total writes nothing into out: .*, out\[0\] = … .*\n.*: out = s"
    with pytest.raises(TypeError, match=words):
        xdev.guvectorize("(n)->(),(n)")(total)
    with pytest.raises(TypeError, match=r"nothing into out: .* out\[i\] = .*\n.*def"):
        xdev.guvectorize("(n)->(n)")(unnamed)


def unnamed(x, out):  # noqa: ARG001
    x[0] = 1


def test_outputs_methods_and_dtypes_that_cannot_be_are_refused(device, pair):
    x, y = pair
    with pytest.raises(ValueError, match="no input has the core dimension m"):
        repeated(y)
    out = xdev.concat([y, y])
    assert repeated(y + 1, out=out) is out
    assert xdev.to_numpy(out).tolist() == [1, 2, 3, 1, 2, 3]
    with pytest.raises(RuntimeError, match="signature"):
        np.matmul.reduce(np.ones(3))
    with pytest.raises(RuntimeError, match=r"dot.reduce .* \(n\),\(n\)->\(\)"):
        dot.reduce(x)
    if device == "cpu":
        y.flags.writeable = False
        with pytest.raises(ValueError, match="read-only"):
            repeated(x, out=y)
        for dtype in ("O", "f2", "M8[s]"):
            z = np.zeros(3, dtype)
            with pytest.raises(TypeError, match=r"dot: .*dtype .*bool, integers"):
                dot(z, z, out=np.zeros((), dtype))
    else:
        with pytest.raises(xdev.DeviceMismatchError):
            dot(x, np.ones(3))
        with pytest.raises(xdev.DeviceMismatchError):
            dot(x, y, out=np.ones(2))


@xdev.guvectorize("(n)->(n)")
def halved(x, out):
    for k in range(x.size):
        out[k] = x[k] / 2


@pytest.mark.parametrize(("taken", "given"), [("d", "i8"), ("i4", "u4")])
def test_outputs_that_would_cut_results_are_refused_as_numpy_refuses(
    device, taken, given
):
    plain = np.arange(4).astype(taken), np.full(4, 7).astype(given)
    x, out = there(device, *plain)
    before = xdev.to_numpy(out)
    with pytest.raises(TypeError, match="casting rule 'same_kind'"):
        np.add(plain[0], plain[0], out=plain[1].copy())

    with pytest.raises(TypeError, match=r"halved: the result .*'same_kind': .* out="):
        halved(x, out=out)
    assert_array_equal(xdev.to_numpy(out), before)

    x4, out4 = there(device, np.arange(4.0), np.zeros(4, np.float32))
    assert xdev.to_numpy(halved(x4, out=out4)).tolist() == [0, 0.5, 1, 1.5]
    with pytest.raises(TypeError, match="casting='safe'"):
        halved(x4, out=out4, casting="safe")
    for way in ({"casting": "unsafe"}, {"dtype": given}):
        assert halved(x, out=out, **way) is out
        assert_array_equal(xdev.to_numpy(out), (np.arange(4) / 2).astype(given))


TYPES = ["void(int64[:], int64[:])", "void(float64[:], float64[:])"]


@pytest.fixture(scope="module")
def typed():
    numba = pytest.importorskip("numba")
    vectorizers = xdev.guvectorize, numba.guvectorize
    return [guvectorize(TYPES, "(n)->(n)")(copied) for guvectorize in vectorizers]


@pytest.mark.parametrize("casting", ["no", "safe", "same_kind", "unsafe"])
@pytest.mark.parametrize("asked", ["d", "f"])
@pytest.mark.parametrize("char", "hd")
def test_typings_obey_dtype_and_casting_as_numbas(device, char, asked, casting, typed):
    ours, theirs = typed
    x, keywords = np.arange(4).astype(char), {"dtype": asked, "casting": casting}

    if asked == "f":
        with pytest.raises(TypeError, match="gives float32; it has "):
            called(device, ours, x, **keywords)
    elif np.can_cast(x.dtype, asked, casting):
        made = called(device, ours, x, **keywords)
        assert_array_equal(made, theirs(x, **keywords), strict=True)
    else:
        with pytest.raises(TypeError, match="with casting"):
            called(device, ours, x, **keywords)
