"""Arrays of two libraries or devices in one call: refused, with advice that works."""

import inspect
import pickle
import re
from functools import partial

import numpy as np
import pytest

import xdev

ADVICE = re.compile(r"xdev\.(?:to_device|asarray)\((\w+(?:\[\d\])?), .*?'?\)(?= or |$)")


def last(call):
    return call.path.rpartition(".")[2]


def operands(call):
    """Return (argument's number or name, index in a list) of each array of a call."""
    for key, value in [*enumerate(call.args), *call.kw.items()]:
        if isinstance(value, list):
            yield from ((key, index) for index in range(len(value)))
        elif isinstance(value, np.ndarray):
            yield key, None


def put(call, library, site, odd, alien):
    """Return a call's arguments in a library, but the one at ``odd``, as ``alien``."""

    def place(key, value):
        if isinstance(value, list):
            return [
                (alien if odd == (key, i) else library.put)(*at)
                for i, each in enumerate(value)
                for at in [(each,) if odd == (key, i) else (each, site)]
            ]
        return alien(value) if odd == (key, None) else library.put(value, site)

    args = [place(i, value) for i, value in enumerate(call.args)]
    return args, {name: place(name, value) for name, value in call.kw.items()}


def follow(text, function, args, kw, label):
    """Do what an error's text advises for one argument, then call again."""
    way = next(m for m in ADVICE.finditer(text) if m[1] == label)
    bound = inspect.signature(function).bind(*args, **kw)
    names = {
        name: list(value) if isinstance(value, tuple | list) else value
        for name, value in bound.arguments.items()
    }
    exec(f"{label} = {way[0]}", {"xdev": xdev}, names)  # noqa: S102 - our own advice
    bound.arguments.update(
        {
            name: tuple(value) if isinstance(bound.arguments[name], tuple) else value
            for name, value in names.items()
        }
    )
    return function(*bound.args, **bound.kwargs)


def aliens(library):
    """Yield ways to make arrays that may not meet the library's: whose, and where."""
    if library.name in ("numpy", "dask"):  # whose chunks are NumPy's: test_collections
        yield lambda x: xdev.to_device(x, "fake")
    else:
        yield np.copy
    for site in library.sites[1:]:
        yield partial(library.put, site=site)


def test_every_function_of_several_arrays_refuses_a_mix_and_says_what_to_do(
    library, calls
):
    several = [call for call in calls if len(list(operands(call))) > 1]
    assert len(several) > 40
    for alien in aliens(library):
        for call in several:
            for odd in operands(call):
                refused(call, library, odd, alien)


def refused(call, library, odd, alien):
    args, kw = put(call, library, 0, odd, alien)
    with pytest.raises(xdev.DeviceMismatchError) as caught:
        call.function(*args, **kw)

    text = str(caught.value)
    assert isinstance(caught.value, TypeError)
    assert str(pickle.loads(pickle.dumps(caught.value))) == text  # noqa: S301 - ours
    # linalg.matmul is matmul
    assert text.startswith((f"xdev.{call.path}: ", f"xdev.{last(call)}: "))
    for x in (library.put(np.ones(2)), alien(np.ones(2))):
        where = xdev.device_of(x)  # whose library has its own name for it
        own = getattr(x, "device", where) if where.library else where
        assert f"is on {own}" in text
        assert f"({type(x).__module__.partition('.')[0]}." in text
    labels = [m[1] for m in ADVICE.finditer(text)]
    assert labels
    # Of three arrays two agree, and moving one of them is not enough.
    if len(list(operands(call))) == 2 and not library.lacks(call):
        for label in labels:
            follow(text, call.function, args, kw, label)


def test_numbers_beside_a_mix_change_nothing(library):
    x, y = library.put(np.ones(3)), next(aliens(library))(np.ones(3))

    with pytest.raises(xdev.DeviceMismatchError, match=r"x \(.*min \("):
        xdev.clip(x, y, 2.0)
    with pytest.raises(xdev.DeviceMismatchError, match=r"condition \(.*x2 \("):
        xdev.where(xdev.greater(x, 0), 1.0, y)
    with pytest.raises(xdev.DeviceMismatchError, match=r"x1 \(.*out \("):
        xdev.add(x, 1.0, out=y)
