"""Calls and methods of ufuncs beside NumPy's own: results, types, layouts, refusals."""

import itertools
import os
import warnings
from array import array
from functools import partial

import numpy as np
import pytest
from running import add, locked, sample

import xdev

minus = xdev.vectorize(lambda x: -x)


quotient = xdev.vectorize(lambda x, y: (x // y, x % y))


less = xdev.vectorize(lambda x, y: x < y)


PAIRS = {
    "add": (add, np.add),
    "minus": (minus, np.negative),
    "quotient": (quotient, np.divmod),
    "less": (less, np.less),
}
KINDS = TypeError, ValueError, IndexError, OverflowError
DEEP = os.environ.get("HYPOTHESIS_PROFILE") == "deep"
SHAPES = [(), (0,), (1,), (3,), (2, 3), (2, 0), (2, 1, 3)]


sample = partial(sample, low=1, high=7)  # so that all is exact


def outcome(call, args, keywords):
    """Return what a call gives, or the kind of its error; and its warnings."""
    with warnings.catch_warnings(record=True, action="always") as told:
        try:
            result = call(*args, **keywords)
        except Exception as error:  # noqa: BLE001 - compared below
            result = next((k for k in KINDS if isinstance(error, k)), type(error))
    return result, {warning.category for warning in told}


def seen(x):
    """Return all that is to be the same but the values."""
    if isinstance(x, tuple):
        return tuple(map(seen, x))
    strides = x.strides if isinstance(x, np.ndarray) else None
    return type(x), x.dtype, x.shape, strides


def assert_same(pair, method, made, valid=True):
    """Call both with what ``made()`` makes: arguments, keywords, memory to compare."""
    ours, theirs = (getattr(f, method) for f in pair)
    args, keywords, memory = made()
    others, options, untouched = made()
    case = f"{pair[1].__name__}.{method}{args}, {keywords}"
    result, told = outcome(ours, args, keywords)
    expected, warned = outcome(theirs, others, options)

    if isinstance(expected, type):
        assert isinstance(result, type), (case, expected, result)
        assert result in KINDS
    else:
        assert not isinstance(result, type), (case, result)
        assert (expected is None and result is None) or seen(result) == seen(expected)
        assert told == warned, case
        pairs = zip(
            *(x if isinstance(x, tuple) else (x,) for x in (result, expected)),
            strict=True,
        )
        for x, y in pairs:
            if y is not None:
                mask = np.broadcast_to(valid, np.shape(y))
                np.testing.assert_array_equal(
                    np.asarray(x)[mask], np.asarray(y)[mask], err_msg=case
                )
    for x, y in zip(memory, untouched, strict=True):
        np.testing.assert_array_equal(x, y, err_msg=case)


@pytest.mark.parametrize("one", SHAPES, ids=str)
def test_broadcasting(one):
    for other, pair in itertools.product(SHAPES, PAIRS.values()):
        args = [sample(one), sample(other)][: pair[1].nin]
        assert_same(pair, "__call__", lambda: (args, {}, []))  # noqa: B023


NUMBERS = [
    *(True, 2, -1, 2.5, 2j, 1e400, np.float32(2), np.int8(2), np.uint64(2), np.True_),
    *([1, 2, 3], [1.0, 2.0, 3.0], (1, 2, 3), range(3), [], [[1], [2]], [[1], [2, 3]]),
    *(np.ma.array([1, 2, 3]), array("d", [1, 2, 3])),
    *(bytearray(3), memoryview(bytearray(3)), "text", object()),
]


@pytest.mark.parametrize(
    ("value", "chars"),
    [(value, "ild" if DEEP else "id"[k % 2]) for k, value in enumerate(NUMBERS)],
    ids=lambda x: type(x).__name__,
)
def test_numbers_sequences_and_buffers(value, chars):
    for char in chars:
        x = sample(3, char)
        assert_same(PAIRS["add"], "__call__", lambda: ([x, value], {}, []))  # noqa: B023
        assert_same(PAIRS["add"], "__call__", lambda: ([value, x], {}, []))  # noqa: B023
    assert_same(PAIRS["add"], "__call__", lambda: ([value, 2], {}, []))


def full(shape=(2, 3), char="d", order="C"):
    return np.full(shape, 7, char, order)


#: Outputs, made anew for each call.
OUTS = {
    "array": full,
    "larger": lambda: full((4, 2, 3), order="F"),
    "smaller": lambda: full((2, 1)),
    "of no shape that fits": lambda: full((5,)),
    "stepped": lambda: full((2, 6))[:, ::2],
    "read-only": lambda: locked(full()),
    "integers": lambda: full(char="i"),
    "float32": lambda: full(char="f"),
    "bools": lambda: full(char="?"),
    "complex": lambda: full(char="D"),
    "swapped": lambda: full(char=">f8"),
    "texts": lambda: np.zeros((2, 3), "U2"),
    "number": lambda: 3,
    "list": lambda: [1.0],
    "None": lambda: None,
    "the ellipsis": lambda: ...,
}
MASKS = [
    *(True, False, 1, np.True_, np.array(True), np.array([True, False, True])),
    *(np.array([[True], [False]]), [True, False, True], np.array([1, 0, 1])),
    np.ones(4, bool),
]
KEYWORDS = [
    *({"casting": word} for word in ("no", "safe", "same_kind", "unsafe", "wrong")),
    *({"order": word} for word in ("C", "F", "A", "wrong")),
    *({"dtype": char} for char in ("f", "l", "D", "?")),
    *({"dtype": "f", "casting": "unsafe"}, {"subok": False}, {"keepdims": True}),
    *({"axis": 0}, {"initial": 0}, {"bogus": 1}),
]


def tuples(nout):
    """The ways to give outputs: how many there are, one by itself or not."""
    yield from ((nout, True), (nout + 1, True), (0, True))
    if nout == 1:
        yield 1, False


@pytest.mark.parametrize("kind", OUTS)
@pytest.mark.parametrize("name", PAIRS)
def test_outputs(name, kind):
    pair = PAIRS[name]
    nin, nout = pair[1].nin, pair[1].nout
    for count, wrapped in tuples(nout):
        if kind == "the ellipsis" and wrapped:
            continue

        def made(count=count, wrapped=wrapped, **keywords):
            args = [sample((2, 3)), sample(3, seed=1)][:nin]
            outs = tuple(OUTS[kind]() for _ in range(count))
            arrays = [x for x in outs if isinstance(x, np.ndarray)]
            return args, {"out": outs if wrapped else outs[0], **keywords}, arrays

        assert_same(pair, "__call__", made)
        if count != nout:
            continue
        for keywords in KEYWORDS:
            assert_same(pair, "__call__", lambda: made(**keywords))  # noqa: B023
        for mask in MASKS:
            valid = np.asarray(mask, bool)
            if valid.shape == (4,) or kind in {"larger", "smaller"}:
                valid = True
            assert_same(pair, "__call__", lambda: made(where=mask), valid)  # noqa: B023


ARRAYS = {
    "1-D": lambda c: sample(6, c),
    "2-D": lambda c: sample((3, 4), c),
    "3-D": lambda c: sample((2, 3, 4), c),
    "0-D": lambda c: sample((), c),
    "empty": lambda c: sample((0,), c),
    "of no columns": lambda c: sample((2, 0), c),
    "transposed": lambda c: sample((3, 4), c).T,
    "stepped": lambda c: sample((6, 8), c)[::2, ::-2],
}
AXES = [0, 1, -1, None, (0, 1), (), (0, 0), 5, "x", 1.0, (1,)]
OPTIONS = [
    *({}, {"keepdims": True}, {"initial": 5}, {"initial": None}, {"initial": 5.5}),
    *({"initial": "x"}, {"dtype": "d"}, {"dtype": "f"}, {"dtype": "l"}, {"bogus": 1}),
    *({"where": True}, {"where": False}, {"where": "mask"}, {"casting": "safe"}),
    *({"out": "array"}, {"out": "tuple"}, {"out": "wrong"}, {"out": None}),
    *({"out": ...}, {"out": ()}, {"out": 3}),
]


@pytest.mark.parametrize("char", "lfD")
@pytest.mark.parametrize("method", ["reduce", "accumulate", "reduceat"])
@pytest.mark.parametrize("kind", ARRAYS)
def test_folds(kind, method, char):
    def made(axis, options):
        x = ARRAYS[kind](char)
        keywords, memory = {"axis": axis, **options}, []
        if isinstance(options.get("where"), str):
            keywords["where"] = np.arange(x.size).reshape(x.shape) % 2 == 0
        args = [x, [0, 1]] if method == "reduceat" else [x]
        if isinstance(options.get("out"), str):
            shape = (9,)
            if options["out"] != "wrong":
                sure = getattr(np.add, method)
                found, _ = outcome(sure, args, {"axis": axis})
                shape = shape if isinstance(found, type) else np.shape(found)
            memory = [np.zeros(shape, char)]
            keywords["out"] = tuple(memory) if options["out"] == "tuple" else memory[0]
        return args, keywords, memory

    pairs = list(itertools.product(AXES, OPTIONS))  # here each has every third
    start = 0 if DEEP else (list(ARRAYS).index(kind) + "lfD".index(char)) % 3
    for axis, options in pairs[start :: 1 if DEEP else 3]:
        assert_same(PAIRS["add"], method, lambda: made(axis, options))  # noqa: B023


@pytest.mark.parametrize(
    "indices",
    [[0], [0, 2], [3, 1], [], [-1], [9], [[0]], 0, [1.0], np.uint8([0, 1]), None, "x"],
    ids=str,
)
def test_indices_of_slices(indices):
    assert_same(PAIRS["add"], "reduceat", lambda: ([sample(6), indices], {}, []))


@pytest.mark.parametrize(
    "indices",
    [
        *([0], [0, 0, 2], [], slice(None), slice(0, 4, 2), [[0, 1], [1, 1]], -1, [9]),
        *(np.array([True, False] * 3), ([0, 1],), ..., None, "x", [1.0], (0, 0)),
    ],
    ids=str,
)
def test_in_place(indices):
    for char, value in itertools.product("dlfDBe?", (1, 1.5, [1.0], np.ones(9), 1j)):

        def made(char=char, value=value):
            x = sample(6, char)
            return [x, indices, value], {}, [x]

        assert_same(PAIRS["add"], "at", made)
    x = sample(6)
    assert_same(PAIRS["minus"], "at", lambda: ([x.copy(), indices], {}, []))


@pytest.mark.parametrize("name", PAIRS)
def test_numbers_of_arguments(name):
    x = sample(3, "?" if name == "less" else "d")
    for count in range(7):
        args = [x.copy() for _ in range(count)]
        assert_same(PAIRS[name], "__call__", lambda: (args, {}, []))  # noqa: B023


def test_the_ellipsis_makes_arrays(device):
    x = xdev.asarray(np.arange(3.0), device=device)
    total = xdev.guvectorize("(n)->()")(summed)

    for made in (
        add(x[1], x[2], out=...),
        xdev.add(x[1], x[2], out=...),
        add.reduce(x, out=...),
        total(x, out=...),
    ):
        assert type(made) is type(x)
        assert (made.shape, float(made)) == ((), 3)


def summed(x, out):
    out[0] = 0
    for i in range(x.shape[0]):
        out[0] += x[i]
