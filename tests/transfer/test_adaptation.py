"""``adapt`` and ``cu``: arrays move, and the structure around them stays."""

import collections
import copy
import dataclasses
import functools
import itertools
import sys
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
    "deque": (
        lambda x: collections.deque([types.SimpleNamespace(a=x)]),
        lambda w: setattr(w[0], "b", w),
        "a deque contains itself: obj[0].b is obj:",
    ),
    "dataclass": (
        Derived,
        lambda w: setattr(w, "double", Pair(0, w)),
        "a Derived contains itself: obj.double.right is obj:",
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


@typing.runtime_checkable
class HasParts(typing.Protocol):
    parts: object


@pytest.mark.parametrize(
    ("kind", "match"),
    [
        (3, "a type, not 3"),
        (None, "a type, not None"),
        (list[int], "a type, not"),
        (np.ndarray, "own rule for ndarray"),
        (list, "own rule for list"),
        (object, "own rule for object"),
        (collections.abc.Mapping, "register the classes themselves"),
        (collections.abc.Iterable, "register the classes themselves"),
        (HasParts, "register the classes themselves"),
    ],
    ids=str,
)
def test_what_has_no_rule_of_its_own_is_not_registered(kind, match):
    with pytest.raises(TypeError, match=match):
        xdev.adapt.register(kind)


def test_a_rule_that_cannot_be_called_is_refused():
    class Box:
        pass

    with pytest.raises(TypeError, match="rule for Box is None"):
        xdev.adapt.register(Box)(None)

    box = Box()
    assert xdev.adapt("fake", box) is box


def test_a_class_derived_from_an_array_may_have_a_rule():
    class Marked(np.ndarray):
        pass

    @xdev.adapt.register(Marked)
    def _(move, x):
        return "marked", move(x.view(np.ndarray))

    mark, there = xdev.adapt("fake", X.view(Marked))

    assert mark == "marked"
    assert xdev.device_of(there) == "fake"


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


leaves = st.sampled_from([None, 1, "text", "array", "shared"])
trees = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
        inner.map(Layer),
        inner.map(Diagonal),
    ),
    max_leaves=20,
)


def grown(plan, array):
    """Make a tree of a plan; ``array(name)`` makes its arrays."""
    if plan in ("array", "shared"):
        return array(plan)
    if isinstance(plan, list | tuple):
        return type(plan)(grown(part, array) for part in plan)
    if isinstance(plan, dict):
        return {key: grown(part, array) for key, part in plan.items()}
    if isinstance(plan, Layer):
        return Layer(grown(plan.weights, array))
    return Diagonal(grown(plan.diag, array)) if isinstance(plan, Diagonal) else plan


def flat(tree):
    """Return the leaves of a tree, and the types on the way to each."""
    kind = type(tree)
    if isinstance(tree, list | tuple):
        parts = list(tree)
    elif isinstance(tree, dict):
        parts = [part for _, part in sorted(tree.items())]
    elif isinstance(tree, Layer | Diagonal):
        parts = [tree.weights if isinstance(tree, Layer) else tree.diag]
    else:
        return [((), tree)]
    inner = itertools.chain.from_iterable(map(flat, parts))
    return [((kind,), None)] + [((kind, *way), leaf) for way, leaf in inner]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(plan=trees)
def test_any_tree_keeps_its_form_and_its_values(device, plan):
    numbers = itertools.count()
    shared = np.full(3, -1.0, "float32")

    def array(name):
        return shared if name == "shared" else np.full(2, next(numbers), "int32")

    tree = grown(plan, array)
    before = copy.deepcopy(tree)

    there = xdev.adapt(device, tree)

    moved, kept = flat(there), flat(tree)
    assert [way for way, _ in moved] == [way for way, _ in kept]
    aliases = {}
    for (_, new), (_, old), (_, was) in zip(moved, kept, flat(before), strict=True):
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


def test_an_array_that_a_rule_made_is_told_to_be_one():
    class Names:
        pass

    @xdev.adapt.register(Names)
    def _(move, _):
        return move(np.array(["made here"]))

    with pytest.raises(TypeError, match=r"move an array that a rule made: .*<U9"):
        xdev.adapt("fake", [Names()])


def test_texts_are_told_what_encodes_them():
    x = np.array(["b", "a", "b"])

    with pytest.raises(TypeError, match="encode it, as") as caught:
        xdev.adapt("fake", {"names": x})
    advice = str(caught.value).rpartition(", as ")[2].removesuffix(" does")
    codes = eval(advice, {"numpy": np, "x": x})  # noqa: S307 - our advice
    assert xdev.to_numpy(xdev.adapt("fake", codes)).tolist() == [1, 0, 1]


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
