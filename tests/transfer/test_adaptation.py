"""``adapt`` and ``cu``: arrays move, and the structure around them stays."""

import collections
import dataclasses
import functools
import sys
import time
import types
import typing

import numpy as np
import pytest

import xdev

X = np.arange(4, dtype="float64")
Pair = collections.namedtuple("Pair", "left right")  # noqa: PYI024


@dataclasses.dataclass(frozen=True, slots=True)
class Layer:
    weights: np.ndarray
    name: str = "layer"


@dataclasses.dataclass
class Derived:
    """A field that __init__ does not take, one without a value, and one more."""

    kinds: typing.ClassVar = ["left alone"]
    array: np.ndarray
    double: np.ndarray = dataclasses.field(init=False)
    unset: np.ndarray = dataclasses.field(init=False)

    def __post_init__(self):
        self.double = self.array * 2
        self.aside = self.array

    @functools.cached_property
    def triple(self):
        return self.array * 3


class Diagonal:
    def __init__(self, diag):
        self.diag = diag


class Special(Diagonal):
    pass


@xdev.adapt.register(Diagonal)
def _diagonal(move, x):
    return type(x)(move(x.diag))


# -- classes derived from containers, whose own code must not run ---------------------


def refuse(*_):
    message = "the class's own code ran"
    raise AssertionError(message)


class Point(tuple):  # noqa: SLOT001 - it has attributes
    def __new__(cls, left, right):
        return super().__new__(cls, (left, right))


class Locked(dict):
    __setitem__ = update = items = values = __copy__ = __reduce_ex__ = refuse


class LockedList(list):
    __slots__ = ("empty", "extra")
    append = extend = clear = __iter__ = __copy__ = __reduce_ex__ = refuse


class Base:
    __slots__ = ("extra",)


@dataclasses.dataclass(frozen=True, slots=True)
class Fields(Base):
    x: object
    unset: object = dataclasses.field(init=False)

    __copy__ = __reduce_ex__ = __getstate__ = __setstate__ = refuse


def filled(base, whole, x):
    """Fill a container whose own methods refuse, and give it an attribute."""
    if issubclass(base, dict):
        base.__setitem__(whole, "a", x)
    elif base is not object:
        base.extend(whole, [x])
    object.__setattr__(whole, "extra", x)
    return whole


#: What holds an array, how it is read again, and where the same array is once more.
WRAPS = {
    "array": (lambda x: x, lambda y: [y]),
    "list": (lambda x: [1, x], lambda y: y[1:]),
    "tuple": (lambda x: (x, "a"), lambda y: y[:1]),
    "namedtuple": (lambda x: Pair(None, x), lambda y: [y.right]),
    "struct sequence": (lambda x: time.struct_time([x] * 9), list),
    "deque": (lambda x: collections.deque([1, x], maxlen=2), lambda y: [y[1]]),
    "namespace": (lambda x: types.SimpleNamespace(a=1, b=x), lambda y: [y.b]),
    "dict": (lambda x: {"a": {"b": x}}, lambda y: [y["a"]["b"]]),
    "OrderedDict": (lambda x: collections.OrderedDict(a=x), lambda y: [y["a"]]),
    "defaultdict": (lambda x: collections.defaultdict(list, a=x), lambda y: [y["a"]]),
    "frozen dataclass": (Layer, lambda y: [y.weights]),
    "dataclass": (Derived, lambda y: [y.array, y.aside]),
    "registered": (Diagonal, lambda y: [y.diag]),
    "registered's": (Special, lambda y: [y.diag]),
    "a tuple's": (lambda x: filled(object, Point(x, 1), x), lambda y: [y[0], y.extra]),
    "a dict's": (
        lambda x: filled(dict, Locked(), x),
        lambda y: [dict.__getitem__(y, "a"), y.extra],
    ),
    "a list's": (
        lambda x: filled(list, LockedList(), x),
        lambda y: [*list.__iter__(y), y.extra],
    ),
    "an object's": (lambda x: filled(object, Fields(x), x), lambda y: [y.x, y.extra]),
}


@pytest.mark.parametrize(("wrap", "unwrap"), WRAPS.values(), ids=WRAPS)
def test_the_type_is_kept_and_the_array_moved(device, wrap, unwrap):
    whole = wrap(X)

    there = xdev.adapt(device, whole)

    first, *others = unwrap(there)
    assert xdev.device_of(first) == device
    assert all(other is first for other in others)
    assert all(x is X for x in unwrap(whole))
    assert type(there) is type(xdev.to_device(X, device) if whole is X else whole)
    back = xdev.adapt("cpu", there)
    np.testing.assert_array_equal(unwrap(back)[0], X)
    assert type(back) is type(whole)
    for name in ("maxlen", "default_factory"):
        assert getattr(there, name, None) == getattr(whole, name, None)
    for name in ("unset", "empty"):
        assert not hasattr(there, name)
    assert xdev.adapt(device, there) is there
    outer = {"whole": there, "rest": [None, 1.5, "a", np.float32(1), ()]}
    assert xdev.adapt(device, outer) is outer


def test_two_views_of_one_memory_are_two_arrays_and_one_crosses_once():
    with xdev.transfer_guard("allow") as counts:
        there = xdev.adapt("fake", [X[:2], X[:2], X, {"a": X}, Diagonal(X)])

    assert (counts.copies, counts.nbytes) == (3, 2 * X.nbytes)
    assert there[2] is there[3]["a"] is there[4].diag
    there[0][...] = 7
    assert there[1][0] == X[0]


def test_all_that_a_dataclass_holds_moves_along():
    whole = Derived(X)
    assert whole.triple is whole.triple

    there = xdev.adapt("fake", whole)

    for name, value in {"double": X * 2, "triple": X * 3, "aside": X}.items():
        assert xdev.device_of(getattr(there, name)) == "fake"
        np.testing.assert_array_equal(xdev.to_numpy(getattr(there, name)), value)
    assert there.kinds is Derived.kinds


CYCLES = {
    "dict": (
        lambda x: {"a": [x, {}]},
        lambda w: w["a"][1].update(up=w["a"]),
        "a list contains itself, as obj['a'][1]['up']:",
    ),
    "dataclass": (
        Derived,
        lambda w: setattr(w, "double", Pair(0, w)),
        "a Derived contains itself, as obj.double.right:",
    ),
    "registered": (
        lambda x: (x, Diagonal(x)),
        lambda w: setattr(w[1], "diag", [w[1]]),
        "a Diagonal contains itself, as obj[1].diag[0]:",
    ),
}


@pytest.mark.parametrize(("make", "close", "text"), CYCLES.values(), ids=CYCLES)
def test_a_cycle_is_refused_and_the_way_to_it_named(device, make, close, text):
    whole = make(X)
    close(whole)

    with pytest.raises(ValueError, match="break the cycle first") as caught:
        xdev.adapt(device, whole)

    assert text in str(caught.value)


# -- rules ----------------------------------------------------------------------------


def test_a_rule_is_used_from_when_it_is_registered_and_may_move_what_it_makes():
    class Lazy:
        def __init__(self, make, made=None):
            self.make, self.made = make, made

    lazy = Lazy(lambda: X + 1)
    assert xdev.adapt("fake", lazy) is lazy

    @xdev.adapt.register(Lazy)
    def rule(move, x):
        return Lazy(x.make, move(x.make()))

    there = xdev.adapt("fake", lazy)
    np.testing.assert_array_equal(xdev.to_numpy(there.made), X + 1)
    assert str(xdev.cu(lazy).made.dtype) == "float32"
    assert rule(lambda part: part, lazy).made.shape == X.shape


@pytest.mark.parametrize("kind", [3, None, list[int]], ids=str)
def test_what_is_no_type_is_not_registered(kind):
    with pytest.raises(TypeError, match="a type, not"):
        xdev.adapt.register(kind)


def test_a_rule_that_returns_nothing_is_told_so():
    class Forgotten:
        part = np.ones(2)

    @xdev.adapt.register(Forgotten)
    def _(move, x):
        move(x.part)

    with pytest.raises(TypeError, match="rule for Forgotten returned None"):
        xdev.adapt("fake", {"a": [Forgotten()]})


# -- what cannot be moved -------------------------------------------------------------


@dataclasses.dataclass
class Trouble(Exception):  # noqa: N818 - its arguments are no attributes
    x: object


@pytest.mark.parametrize(
    ("wrap", "path"),
    [
        (lambda x: x, "obj"),
        (lambda x: {"train": {"names": x}, "test": X}, r"obj\['train'\]\['names'\]"),
        (lambda x: [X, (X, x)], r"obj\[1\]\[1\]"),
        (lambda x: types.SimpleNamespace(a=[X], b=x), r"obj\.b"),
    ],
)
def test_what_cannot_be_moved_is_told_where_it_is(wrap, path):
    freed = xdev.empty(100_000, device="cpu")
    xdev.memory.free(freed)
    masked = np.ma.masked_array([1.0, 2.0], [0, 1])
    for x, error in (
        (freed, xdev.UseAfterFreeError),
        (masked, TypeError),
        (np.array(["a"]), TypeError),
    ):
        with pytest.raises(error, match=rf"^adapt cannot move {path}: "):
            xdev.adapt("fake", wrap(x))
    with pytest.raises(xdev.UseAfterFreeError, match=rf"^adapt cannot move {path}: "):
        xdev.cu(wrap(freed))
    words = rf"rebuild {path}, .*Trouble.* is not safe.*: xdev\.adapt\.register"
    with pytest.raises(TypeError, match=words):
        xdev.adapt("fake", wrap(Trouble(x=np.ones(1))))


def nested(depth):
    x = [np.ones(2)]
    for _ in range(depth):
        x = [x]
    return x


def test_what_is_nested_too_deep_is_refused(device):
    with pytest.raises(RecursionError):
        xdev.adapt(device, nested(5 * sys.getrecursionlimit()))

    moved = xdev.adapt(device, nested(50))
    for _ in range(51):
        (moved,) = moved
    assert xdev.device_of(moved) == device


# -- cu -------------------------------------------------------------------------------


def test_cu_makes_floats_single_and_keeps_the_rest(device):
    whole = {"f": X, "c": X * 1j, "i": np.arange(3), "h": X.astype("float16"), "s": "a"}
    whole |= {"l": X.astype("longdouble"), "m": X.astype("clongdouble")}
    whole |= {"there": xdev.to_device(X, "fake"), "again": [X]}
    cuda = xdev.Device("cuda")

    with xdev.use_device(device):
        moved = xdev.cu(whole)
        assert xdev.cu(moved) is moved

    assert moved.pop("s") == "a"
    assert moved.pop("again")[0] is moved["f"]
    assert {key: str(part.dtype) for key, part in moved.items()} == {
        **dict.fromkeys(("f", "l", "there"), "float32"),
        **dict.fromkeys(("c", "m"), "complex64"),
        "i": "int64",
        "h": "float16",
    }
    where = cuda if cuda.available else device
    assert {xdev.device_of(part) for part in moved.values()} == {where}
    np.testing.assert_array_equal(xdev.to_numpy(moved["f"]), X.astype("float32"))
