"""``adapt`` and ``cu``: arrays move, and the structure around them stays."""

import collections
import copy
import dataclasses
import functools
import itertools
import sys
import time
import types
import typing
from functools import partial

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import xdev

X = np.arange(4, dtype="float64")
Pair = collections.namedtuple("Pair", "left right")  # noqa: PYI024


class Named(typing.NamedTuple):
    array: np.ndarray
    name: str = "named"


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


@dataclasses.dataclass(slots=True)
class Slotted:
    array: np.ndarray
    unset: np.ndarray = dataclasses.field(init=False)


class Diagonal:
    def __init__(self, diag):
        self.diag = diag


class Special(Diagonal):
    pass


@xdev.adapt.register(Diagonal)
def _diagonal(move, x):
    return type(x)(move(x.diag))


WRAPS = {
    "array": (lambda x: x, lambda y: y),
    "list": (lambda x: [1, x], lambda y: y[1]),
    "tuple": (lambda x: (x, "a"), lambda y: y[0]),
    "namedtuple": (lambda x: Pair(None, x), lambda y: y.right),
    "NamedTuple": (Named, lambda y: y.array),
    "deque": (lambda x: collections.deque([1, x], maxlen=2), lambda y: y[1]),
    "namespace": (lambda x: types.SimpleNamespace(a=1, b=x), lambda y: y.b),
    "dict": (lambda x: {"a": {"b": x}}, lambda y: y["a"]["b"]),
    "OrderedDict": (lambda x: collections.OrderedDict(a=x), lambda y: y["a"]),
    "defaultdict": (lambda x: collections.defaultdict(list, a=x), lambda y: y["a"]),
    "frozen dataclass": (Layer, lambda y: y.weights),
    "dataclass": (Derived, lambda y: y.array),
    "slotted dataclass": (Slotted, lambda y: y.array),
    "registered": (Diagonal, lambda y: y.diag),
    "registered's": (Special, lambda y: y.diag),
}


@pytest.mark.parametrize(("wrap", "unwrap"), WRAPS.values(), ids=WRAPS)
def test_the_type_is_kept_and_the_array_moved(device, wrap, unwrap):
    whole = wrap(X)

    there = xdev.adapt(device, whole)

    assert xdev.device_of(unwrap(there)) == device
    assert unwrap(whole) is X
    assert type(there) is type(xdev.to_device(X, device) if whole is X else whole)
    back = xdev.adapt("cpu", there)
    np.testing.assert_array_equal(unwrap(back), X)
    assert type(back) is type(whole)


@pytest.mark.parametrize("wrap", [wrap for wrap, _ in WRAPS.values()], ids=WRAPS)
def test_with_nothing_to_move_the_object_itself_comes_back(device, wrap):
    whole = wrap(xdev.to_device(X, device))

    assert xdev.adapt(device, whole) is whole
    outer = {"whole": whole, "rest": [None, 1.5, "a", np.float32(1), ()]}
    assert xdev.adapt(device, outer) is outer


def test_two_views_of_one_memory_are_two_arrays():
    there = xdev.adapt("fake", [X[:2], X[:2]])

    there[0][...] = 7
    assert there[1][0] == X[0]


def test_an_array_that_occurs_often_crosses_once():
    with xdev.transfer_guard("allow") as counts:
        xdev.adapt("fake", [X, {"a": X}, Diagonal(X), X.copy()])

    assert (counts.copies, counts.nbytes) == (2, 2 * X.nbytes)


def test_all_that_a_dataclass_holds_moves_along():
    whole = Derived(X)
    assert whole.triple is whole.triple

    there = xdev.adapt("fake", whole)

    for name, value in {"double": X * 2, "triple": X * 3, "aside": X}.items():
        assert xdev.device_of(getattr(there, name)) == "fake"
        np.testing.assert_array_equal(xdev.to_numpy(getattr(there, name)), value)
    assert there.aside is there.array
    assert not hasattr(there, "unset")
    assert there.kinds is Derived.kinds
    assert not hasattr(xdev.adapt("fake", Slotted(X)), "unset")


CYCLES = {
    "list": (lambda x: [x], lambda w: w.append(w), "a list contains itself: obj[1]"),
    "dict": (
        lambda x: {"a": [x, {}]},
        lambda w: w["a"][1].update(up=w["a"]),
        "a list contains itself: obj['a'][1]['up'] is obj['a']:",
    ),
    "registered": (
        lambda x: (x, Diagonal(x)),
        lambda w: setattr(w[1], "diag", [w[1]]),
        "a Diagonal contains itself: obj[1].diag[0] is obj[1]:",
    ),
}


@pytest.mark.parametrize(("make", "close", "text"), CYCLES.values(), ids=CYCLES)
def test_a_cycle_is_refused_and_the_way_to_it_named(device, make, close, text):
    whole = make(X)
    close(whole)

    with pytest.raises(ValueError, match="break the cycle first") as caught:
        xdev.adapt(device, whole)

    assert text in str(caught.value)


def test_a_rule_is_used_from_when_it_is_registered():
    class Late:
        def __init__(self, part):
            self.part = part

    late = Late(X)
    assert xdev.adapt("fake", late) is late

    @xdev.adapt.register(Late)
    def rule(move, x):
        return Late(move(x.part))

    assert xdev.device_of(xdev.adapt("fake", late).part) == "fake"
    assert rule(lambda part: part, late).part is X


@pytest.mark.parametrize("kind", [3, None, list[int]], ids=str)
def test_what_is_no_type_is_not_registered(kind):
    with pytest.raises(TypeError, match="a type, not"):
        xdev.adapt.register(kind)


def test_a_rule_may_move_what_it_makes():
    class Lazy:
        def __init__(self, make, made=None):
            self.make, self.made = make, made

    @xdev.adapt.register(Lazy)
    def _(move, x):
        return Lazy(x.make, move(x.make()))

    there = xdev.adapt("fake", Lazy(lambda: X + 1))

    np.testing.assert_array_equal(xdev.to_numpy(there.made), X + 1)
    assert str(xdev.cu(Lazy(lambda: X + 1)).made.dtype) == "float32"


# -- any tree ---------------------------------------------------------------------


arrays = st.builds(np.full, st.just(2), st.integers(0, 99), st.just("int32"))
trees = st.recursive(
    st.sampled_from([None, 1, "text", np.full(3, -1, "int32")]) | arrays,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
        inner.map(Layer),
        inner.map(Diagonal),
    ),
    max_leaves=20,
)


def flat(tree):
    """Return the leaves of a tree, and the types on the way to each."""
    if isinstance(tree, list | tuple):
        parts = list(tree)
    elif isinstance(tree, dict):
        parts = [tree[key] for key in sorted(tree)]
    elif isinstance(tree, Layer | Diagonal):
        parts = [tree.weights if isinstance(tree, Layer) else tree.diag]
    else:
        return [((), tree)]
    inner = itertools.chain.from_iterable(map(flat, parts))
    return [((type(tree),), None)] + [((type(tree), *way), x) for way, x in inner]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tree=trees)
def test_any_tree_keeps_its_form_and_its_values(device, tree):
    before = [(way, copy.copy(leaf)) for way, leaf in flat(tree)]

    there = xdev.adapt(device, tree)

    aliases = {}
    for (way, new), (_, old), (kept, was) in zip(
        flat(there), flat(tree), before, strict=True
    ):
        assert way == kept
        if isinstance(old, np.ndarray):
            assert xdev.device_of(new) == device
            np.testing.assert_array_equal(xdev.to_numpy(new), old)
            np.testing.assert_array_equal(old, was)
            assert aliases.setdefault(id(old), new) is new
        else:
            assert new is old
    if not aliases or device == "cpu":
        assert there is tree


# -- what cannot be moved -------------------------------------------------------------


@pytest.mark.parametrize("name", ["adapt", "cu"])
def test_an_array_that_cannot_move_is_told_where_it_is(name):
    move = xdev.cu if name == "cu" else partial(xdev.adapt, "fake")
    freed = xdev.empty(100_000, device="cpu")
    xdev.memory.free(freed)
    masked = np.ma.masked_array([1.0, 2.0], [0, 1])
    wrong = [(freed, xdev.UseAfterFreeError)]
    if name == "adapt":  # cu has the CPU keep these
        wrong += [(masked, TypeError), (np.array(["a"]), TypeError)]
    good = np.ones(3)
    for x, error in wrong:
        for tree, path in (
            ({"train": {"names": x}, "test": good}, r"obj\['train'\]\['names'\]"),
            ([good, (good, x)], r"obj\[1\]\[1\]"),
            (types.SimpleNamespace(a=[good], b=x), r"obj\.b"),
            (x, "obj"),
        ):
            with pytest.raises(error, match=rf"^adapt cannot move {path}: "):
                move(tree)


def test_a_rule_that_returns_nothing_is_told_so():
    class Forgotten:
        part = np.ones(2)

    @xdev.adapt.register(Forgotten)
    def _(move, x):
        move(x.part)

    with pytest.raises(TypeError, match="rule for Forgotten returned None"):
        xdev.adapt("fake", {"a": [Forgotten()]})


def nested(depth):
    x = [np.ones(2)]
    for _ in range(depth):
        x = [x]
    return x


def test_what_is_nested_too_deep_says_how_deep_it_may_be(device):
    limit = sys.getrecursionlimit()
    with pytest.raises(
        RecursionError, match=rf"recursion limit of {limit}: .*sys\.setrecursionlimit"
    ):
        xdev.adapt(device, nested(5 * limit))

    moved = xdev.adapt(device, nested(50))
    for _ in range(51):
        (moved,) = moved
    assert xdev.device_of(moved) == device


# -- derived classes: kept whole, none of their code run ------------------------------


class Ends(tuple):
    """Made of two arguments, which tuples do not take."""

    __slots__ = ()

    def __new__(cls, left, right):
        return super().__new__(cls, (left, right))


class Point(tuple):  # noqa: SLOT001 - it has attributes
    def __new__(cls, left, right):
        return super().__new__(cls, (left, right))


class Two(typing.NamedTuple):
    x: object
    y: object


class Both(Two):
    def __new__(cls, both):
        return super().__new__(cls, *both)


def refuse(*_):
    message = "the class's own code ran"
    raise AssertionError(message)


class Locked(dict):
    __setitem__ = update = items = values = __copy__ = __reduce_ex__ = refuse


class LockedList(list):
    append = extend = clear = __iter__ = __copy__ = __reduce_ex__ = refuse


class SlottedList(list):
    __slots__ = ("empty", "extra")


class Ordered(collections.OrderedDict):
    __setitem__ = refuse


class Factory(collections.defaultdict):
    pass


class Ring(collections.deque):
    def __init__(self):
        super().__init__(maxlen=3)


def filled(base, whole, parts):
    """Fill a container whose own methods refuse."""
    if issubclass(base, dict):
        for key, part in zip("ab", parts, strict=True):
            base.__setitem__(whole, key, part)
    else:
        base.extend(whole, parts)
    return whole


def ring(parts):
    return filled(collections.deque, Ring(), parts)


MADE = {
    "a tuple": (tuple, lambda parts: Point(*parts)),
    "a named tuple": (tuple, Both),
    "a dict": (dict, lambda parts: filled(dict, Locked(), parts)),
    "a list": (list, lambda parts: filled(list, LockedList(), parts)),
    "a list with slots": (list, lambda parts: filled(list, SlottedList(), parts)),
    "an ordered dict": (
        collections.OrderedDict,
        lambda parts: filled(collections.OrderedDict, Ordered(), parts),
    ),
    "a dict with a factory": (
        dict,
        lambda parts: filled(dict, Factory(list), parts),
    ),
    "a deque": (
        collections.deque,
        ring,
    ),
}


def inside(base, whole):
    return [*(base.values if issubclass(base, dict) else base.__iter__)(whole)]


@pytest.mark.parametrize("name", MADE)
def test_a_derived_class_keeps_its_attributes_and_runs_nothing(name):
    base, make = MADE[name]
    first, second, extra = np.ones(2), np.zeros(3), np.full(2, 7.0)
    whole = make((first, second))
    whole.extra = extra

    there = xdev.adapt("fake", whole)

    assert type(there) is type(whole)
    assert there is not whole
    parts = [*inside(base, there), there.extra]
    assert [str(xdev.device_of(part)) for part in parts] == ["fake:0"] * 3
    for part, was in zip(parts, (first, second, extra), strict=True):
        np.testing.assert_array_equal(xdev.to_numpy(part), was)
    assert inside(base, whole)[0] is first
    assert whole.extra is extra
    assert xdev.adapt("cpu", whole) is whole


def test_derived_containers_keep_their_form():
    array = np.ones(2)
    circle, factory = ring((array,)), Factory(list, a=array)
    ordered = collections.OrderedDict(a=array, b=array)
    ordered.move_to_end("a")

    assert xdev.adapt("fake", circle).maxlen == 3
    assert xdev.adapt("fake", factory).default_factory is list
    assert list(xdev.adapt("fake", ordered)) == ["b", "a"]
    assert type(xdev.adapt("fake", Ends(array, 1))) is Ends
    listed = SlottedList(["text"])
    listed.extra = array
    there = xdev.adapt("fake", listed)
    assert (there, str(xdev.device_of(there.extra))) == (["text"], "fake:0")
    assert not hasattr(there, "empty")
    assert type(xdev.adapt("fake", time.struct_time([array] * 9))) is time.struct_time


class Base:
    __slots__ = ("extra",)


@dataclasses.dataclass(frozen=True, slots=True)
class Fields(Base):
    x: object
    unset: object = dataclasses.field(init=False)

    __copy__ = __reduce_ex__ = __getstate__ = __setstate__ = refuse


class Space(types.SimpleNamespace):
    __slots__ = ("extra", "unset")

    def __init__(self, x):
        super().__init__(x=x)

    __copy__ = __reduce_ex__ = refuse


@pytest.mark.parametrize("kind", [Fields, Space])
def test_an_object_keeps_all_that_it_holds_and_runs_nothing(kind):
    x, extra = np.ones(2), np.full(2, 7.0)
    whole = kind(x)
    object.__setattr__(whole, "extra", extra)

    there = xdev.adapt("fake", whole)

    assert type(there) is kind
    np.testing.assert_array_equal(xdev.to_numpy(there.x), x)
    np.testing.assert_array_equal(xdev.to_numpy(there.extra), extra)
    assert str(xdev.device_of(there.x)) == str(xdev.device_of(there.extra)) == "fake:0"
    assert not hasattr(there, "unset")
    assert whole.x is x
    assert whole.extra is extra
    assert xdev.adapt("cpu", whole) is whole


@dataclasses.dataclass
class Trouble(Exception):  # noqa: N818 - its arguments are no attributes
    x: object


def test_what_cannot_be_rebuilt_says_where_it_is_and_what_to_do():
    whole = Trouble(x=np.ones(1))

    with pytest.raises(TypeError, match=r"xdev\.adapt\.register") as caught:
        xdev.adapt("fake", {"layers": [1, whole]})

    text = str(caught.value)
    assert "obj['layers'][1]" in text
    assert "Trouble" in text
    assert "is not safe" in text


# -- cu -------------------------------------------------------------------------------


def test_cu_makes_floats_single_and_keeps_the_rest(device):
    whole = {"f": X, "c": X * 1j, "i": np.arange(3), "h": X.astype("float16"), "s": "a"}
    whole |= {"l": X.astype("longdouble"), "m": X.astype("clongdouble")}
    cuda = xdev.Device("cuda")

    with xdev.use_device(device):
        moved = xdev.cu(whole)

    kinds = {key: str(part.dtype) for key, part in moved.items() if key != "s"}
    wanted = {"f": "float32", "c": "complex64", "i": "int64", "h": "float16"}
    assert kinds == wanted | {"l": "float32", "m": "complex64"}
    assert xdev.device_of(moved["f"]) == ("cuda" if cuda.available else device)
    np.testing.assert_array_equal(xdev.to_numpy(moved["f"]), X.astype("float32"))
    with xdev.use_device(device):
        assert xdev.cu(moved) is moved
    assert moved["s"] == "a"


def test_cu_takes_arrays_that_are_elsewhere_and_keeps_shared_ones_shared():
    strict = pytest.importorskip("array_api_strict")
    there = xdev.to_device(X, "fake")

    moved = xdev.cu([there, there, strict.asarray(X), Diagonal(X)])

    assert {str(x.dtype) for x in (*moved[:3], moved[3].diag)} == {"float32"}
    assert moved[0] is moved[1]
