"""``device=`` of every kind is obeyed or refused; arrays of two places are refused."""

import inspect
import re
from functools import partial
from operator import attrgetter

import numpy as np
import pytest
from calls import operands, placed
from running import pickled

import xdev

X = np.asarray([1.0, 2.0, 3.0])
#: The 16 functions with ``device=``; those of arrays get a NumPy array.
ARGUMENTS = {
    "arange": (3,), "asarray": ([0.0, 1.0, 2.0],), "astype": (X, xdev.float32),
    "empty": (3,), "empty_like": (X,), "eye": (3,), "from_dlpack": (X,), "full": (3, 2),
    "full_like": (X, 2), "linspace": (0, 1, 3), "ones": (3,), "ones_like": (X,),
    "zeros": (3,), "zeros_like": (X,), "fft.fftfreq": (3,), "fft.rfftfreq": (3,),
}  # fmt: skip
MAKERS = {n: partial(attrgetter(n)(xdev), *args) for n, args in ARGUMENTS.items()}
MAKERS["asarray of an array"] = partial(xdev.asarray, X)
INFO = {
    name: getattr(xdev.__array_namespace_info__(), name)
    for name in ("default_dtypes", "dtypes")
}


def there(library, made, site):
    """Assert that an array is the library's, on the device of that number."""
    like = library.put(X, site)
    assert library.owns(made)
    assert xdev.device_of(made) == xdev.device_of(like)
    assert xdev.device_of(made).library == xdev.device_of(like).library
    if hasattr(like, "device"):
        assert made.device == like.device


@pytest.mark.parametrize("name", MAKERS)
def test_the_device_of_an_array_makes_arrays_that_meet_it(library, name):
    for site in library.sites:
        x = library.put(X, site)
        spellings = [xdev.device_of(x)]
        if hasattr(x, "device"):
            spellings += [x.device, xdev.Device(x.device)]
        for device in spellings:
            made = MAKERS[name](device=device)
            there(library, made, site)
            with xdev.use_device(device):
                there(library, xdev.zeros(2), site)
        assert xdev.add(x, xdev.zeros(3, device=xdev.device_of(x))).shape == (3,)


@pytest.mark.parametrize("name", sorted(set(MAKERS) - {"astype", "from_dlpack"}))
def test_dtypes_go_along(library, name):
    device = xdev.device_of(library.put(X))

    for kind in (xdev.float32, "float32", np.dtype("float32"), np.float32):
        made = MAKERS[name](device=device, dtype=kind)
        assert xdev.isdtype(made.dtype, xdev.float32)
    for wrong in ("float33", 3.5, object()):
        with pytest.raises(TypeError, match=r"use one of xdev\.bool"):
            MAKERS[name](device=device, dtype=wrong)
        with pytest.raises(TypeError, match=r"use one of xdev\.bool"):
            xdev.astype(library.put(X), wrong)


@pytest.mark.parametrize("name", [*MAKERS, *INFO])
def test_unknown_and_unusable_devices_are_refused(name):
    make = (MAKERS | INFO)[name]
    for wrong in ("tpu", "cpu:1", "", 7, "CUDA"):
        with pytest.raises(xdev.ConfigurationError, match="device"):
            make(device=wrong)
    with pytest.raises(xdev.DeviceUnavailableError):
        make(device="fake:7")


ADVICE = re.compile(r"xdev\.(?:to_device|asarray)\((\w+(?:\[\d\])?), .*?'?\)(?= or |$)")


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
    args, kw = placed(call, library.put, {odd}, alien)
    with pytest.raises(xdev.DeviceMismatchError) as caught:
        call.function(*args, **kw)

    text = str(caught.value)
    assert isinstance(caught.value, TypeError)
    assert str(pickled(caught.value)) == text
    # linalg.matmul is matmul
    assert text.startswith(
        (f"xdev.{call.path}: ", f"xdev.{call.path.rpartition('.')[2]}: ")
    )
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


def test_the_default_device_is_where_arrays_are_made():
    x = np.ones(3)
    with xdev.use_device("fake:1"):
        for name, *args in ("zeros", 3), ("ones", 3), ("arange", 3), ("asarray", [1]):
            assert xdev.device_of(getattr(xdev, name)(*args)) == "fake:1"
        for there in xdev.asarray(x), xdev.ones_like(x), xdev.zeros(3, device="cpu"):
            assert xdev.device_of(there) == "cpu"


@pytest.mark.parametrize("name", ["tril", "triu"])
def test_a_diagonal_of_another_device_is_refused_by_the_facades_names(name):
    x = xdev.ones((3, 3), device="fake")
    with pytest.raises(xdev.DeviceMismatchError, match=r"k \(.*, x \(.*\(x, 'cpu'\)"):
        getattr(xdev, name)(x, np.array(1))
