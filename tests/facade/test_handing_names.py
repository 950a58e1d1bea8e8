"""Which functions hand arrays on: every function of the standard is decided on."""

import inspect
import operator

import xdev
from xdev.compile import quick_function_code as code
from xdev.facade.handing import ARRAYS, FUNCTIONS, LEFT_OUT
from xdev.facade.quick import QUICKENING

ROOMS = {"": xdev, "linalg.": xdev.linalg, "fft.": xdev.fft}
#: Functions that do more than to hand on, by what they do.
OTHERS = {
    "make arrays, or are about devices": (
        "arange asarray empty empty_like eye from_dlpack full full_like linspace ones "
        "ones_like zeros zeros_like fft.fftfreq fft.rfftfreq"
    ),
    "take data types": "__array_namespace_info__ astype can_cast finfo iinfo isdtype",
    "take no array": "broadcast_shapes namespace",
    "look at other arguments": "clip repeat",
}


def own(name):
    return operator.attrgetter(name)(xdev)


def test_every_function_of_the_standard_is_decided_on():
    elementwise = {row[1] for row in QUICKENING._joined}
    others = {own(name) for names in OTHERS.values() for name in names.split()}
    handing = {own(name) for name in ARRAYS}
    assert not elementwise & handing
    assert not others & (handing | elementwise)
    for prefix, room in ROOMS.items():
        names = xdev.facade.__all__ if room is xdev else room.__all__
        every = [own(f"{prefix}{name}") for name in names]
        functions = {each for each in every if inspect.isfunction(each)}
        assert functions <= elementwise | handing | others


def test_each_is_there_once_to_hand_on():
    assert sorted(" ".join(FUNCTIONS.values()).split()) == sorted(ARRAYS)
    made = QUICKENING.functions
    done = [] if made is None else [name for name, *_ in made._handing]
    assert sorted([*QUICKENING._handing, *done]) == sorted(ARRAYS)
    assert len({own(name) for name in ARRAYS}) == len(ARRAYS)
    for name, function in QUICKENING._handing.items():
        assert function is own(name)


def test_the_code_has_room_for_all():
    assert len(ARRAYS) <= code.MOST_HANDING
    for name in ARRAYS:
        function = own(name)
        assert function.__code__.co_argcount <= code.MOST_PLACES
        assert len(set(function.__kwdefaults__ or ()) - LEFT_OUT) <= code.MOST_NAMED
