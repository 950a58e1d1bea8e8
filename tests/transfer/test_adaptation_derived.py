"""``adapt`` on classes derived from containers: kept whole, none of their code run."""

import collections
import dataclasses
import time
import types
import typing
from functools import partial

import numpy as np
import pytest

import xdev


class Pair(tuple):
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


class Named(Two):
    def __new__(cls, both):
        return super().__new__(cls, *both)


def refuse(*_):
    message = "the class's own code ran"
    raise AssertionError(message)


class Locked(dict):
    __setitem__ = update = items = values = __copy__ = __reduce_ex__ = refuse


class LockedList(list):
    append = extend = clear = __iter__ = __copy__ = __reduce_ex__ = refuse


class Slotted(list):
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
    "a named tuple": (tuple, Named),
    "a dict": (dict, lambda parts: filled(dict, Locked(), parts)),
    "a list": (list, lambda parts: filled(list, LockedList(), parts)),
    "a list with slots": (list, lambda parts: filled(list, Slotted(), parts)),
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


@pytest.mark.fake
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


@pytest.mark.fake
def test_an_array_that_is_an_attribute_alone_moves():
    whole = Slotted(["text"])
    whole.extra = np.ones(2)

    there = xdev.adapt("fake", whole)

    assert there == ["text"]
    assert str(xdev.device_of(there.extra)) == "fake:0"
    assert not hasattr(there, "empty")


@pytest.mark.fake
def test_derived_containers_keep_their_form():
    array = np.ones(2)
    circle, factory = ring((array,)), Factory(list, a=array)
    ordered = collections.OrderedDict(a=array, b=array)
    ordered.move_to_end("a")

    assert xdev.adapt("fake", circle).maxlen == 3
    assert xdev.adapt("fake", factory).default_factory is list
    assert list(xdev.adapt("fake", ordered)) == ["b", "a"]
    assert type(xdev.adapt("fake", Pair(array, 1))) is Pair
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


@pytest.mark.fake
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


@pytest.mark.fake
def test_what_cannot_be_rebuilt_says_where_it_is_and_what_to_do():
    whole = Trouble(x=np.ones(1))

    with pytest.raises(TypeError, match=r"xdev\.adapt\.register") as caught:
        xdev.adapt("fake", {"layers": [1, whole]})

    text = str(caught.value)
    assert "obj['layers'][1]" in text
    assert "Trouble" in text
    assert "is not safe" in text


@typing.runtime_checkable
class HasParts(typing.Protocol):
    parts: object


@pytest.mark.parametrize(
    "kind", [collections.abc.Mapping, collections.abc.Iterable, HasParts]
)
def test_what_is_no_base_of_its_classes_cannot_be_registered(kind):
    with pytest.raises(TypeError, match="register the classes themselves"):
        xdev.adapt.register(kind)


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
