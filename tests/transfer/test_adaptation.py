import collections
import dataclasses

import numpy as np
import pytest

import xdev

X = np.arange(4, dtype="float64")
Pair = collections.namedtuple("Pair", "left right")  # noqa: PYI024


@dataclasses.dataclass(frozen=True, slots=True)
class Layer:
    weights: np.ndarray
    name: str = "layer"


class Diagonal:
    def __init__(self, diag):
        self.diag = diag


@xdev.adapt.register(Diagonal)
def _diagonal(move, x):
    return Diagonal(move(x.diag))


@pytest.mark.parametrize(
    ("wrap", "unwrap"),
    [
        (lambda x: x, lambda y: y),
        (lambda x: [1, x], lambda y: y[1]),
        (lambda x: (x, "a"), lambda y: y[0]),
        (lambda x: Pair(None, x), lambda y: y.right),
        (lambda x: {"a": {"b": x}}, lambda y: y["a"]["b"]),
        (lambda x: collections.OrderedDict(a=x), lambda y: y["a"]),
        (lambda x: collections.defaultdict(list, a=x), lambda y: y["a"]),
        (Layer, lambda y: y.weights),
        (Diagonal, lambda y: y.diag),
    ],
    ids=[
        "array",
        "list",
        "tuple",
        "namedtuple",
        "dict",
        "OrderedDict",
        "defaultdict",
        "dataclass",
        "registered",
    ],
)
def test_the_type_is_kept_and_the_array_moved(wrap, unwrap):
    whole = wrap(X)

    there = xdev.adapt("fake", whole)

    assert xdev.device_of(unwrap(there)) == "fake"
    assert unwrap(whole) is X
    if whole is not X:
        assert type(there) is type(whole)
    back = xdev.adapt("cpu", there)
    np.testing.assert_array_equal(unwrap(back), X)
    assert xdev.adapt("cpu", whole) is whole


def test_shared_arrays_stay_shared():
    there = xdev.adapt("fake", {"a": X, "b": [X, Diagonal(X)]})

    assert there["a"] is there["b"][0] is there["b"][1].diag


def test_a_defaultdict_keeps_its_factory():
    there = xdev.adapt("fake", collections.defaultdict(list, a=X))

    assert there["missing"] == []


def test_cycles_are_refused():
    cycle = [X]
    cycle.append(cycle)

    with pytest.raises(ValueError, match="a list contains itself"):
        xdev.adapt("fake", cycle)


def test_cu_makes_floats_single_and_keeps_the_rest():
    whole = {"f": X, "c": X * 1j, "i": np.arange(3), "h": X.astype("float16"), "s": "a"}

    moved = xdev.cu(whole)

    kinds = {key: str(part.dtype) for key, part in moved.items() if key != "s"}
    assert kinds == {"f": "float32", "c": "complex64", "i": "int64", "h": "float16"}
    expected = "cuda" if xdev.Device("cuda").available else xdev.default_device()
    assert xdev.device_of(moved["f"]) == expected
    np.testing.assert_array_equal(xdev.to_numpy(moved["f"]), X.astype("float32"))
