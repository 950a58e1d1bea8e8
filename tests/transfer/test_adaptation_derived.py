"""``adapt`` on classes derived from containers: kept whole, none of their code run."""

import collections
import dataclasses
import time
import types
import typing

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
def test_derived_containers_keep_their_form():
    array = np.ones(2)
    circle, factory = ring((array,)), Factory(list, a=array)
    ordered = collections.OrderedDict(a=array, b=array)
    ordered.move_to_end("a")

    assert xdev.adapt("fake", circle).maxlen == 3
    assert xdev.adapt("fake", factory).default_factory is list
    assert list(xdev.adapt("fake", ordered)) == ["b", "a"]
    assert type(xdev.adapt("fake", Pair(array, 1))) is Pair
    listed = Slotted(["text"])
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
