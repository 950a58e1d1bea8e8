"""A fake array in NumPy's functions: the text names what xdev has for them."""

import io
import operator
import re

import numpy as np
import pytest

import xdev
from xdev.device.fake.counterparts import RENAMED


def refused(function, *args):
    with pytest.raises(
        TypeError, match=r"NumPy's.*on fake:0: .*to_numpy\(x\)"
    ) as caught:
        function(*args)
    return re.findall(r"xdev\.([\w.]+)", str(caught.value))


@pytest.fixture
def x():
    return xdev.asarray(np.eye(3), device="fake")


@pytest.mark.parametrize("name", RENAMED)
def test_what_has_another_name_is_named(x, name):
    two = {"dot", "inner", "outer", "cross", "power", "left_shift", "right_shift"}
    listed = {"concatenate", "hstack", "vstack"}
    args = {"arctan2": (x, x), "swapaxes": (x, 0, 1)}.get(name, (x,))
    args = (x, x) if name in two else ([x, x],) if name in listed else args

    function = np.linalg.norm if name == "norm" else getattr(np, name)
    *own, host = refused(function, *args)
    assert all(callable(operator.attrgetter(found)(xdev)) for found in own)
    assert ", ".join(own) == RENAMED[name].replace(" or xdev.", ", ")
    assert not hasattr(xdev, name)
    assert host == "to_numpy"


@pytest.mark.parametrize(
    ("function", "own"),
    [
        (np.sum, ["sum"]),
        (np.sin, ["sin"]),
        (np.linalg.inv, ["linalg.inv"]),
        (np.fft.fft, ["fft.fft"]),
        (np.median, []),
        (lambda x: np.einsum("ij->", x), []),
        (lambda x: np.save(io.BytesIO(), x), []),
    ],
)
def test_what_has_the_same_name_or_none(x, function, own):
    assert refused(function, x) == [*own, "to_numpy"]


@pytest.mark.parametrize("room", ["", ".linalg"])
def test_a_name_that_the_library_lacks_is_told_as_its_own(x, room):
    library = xdev.namespace(x)
    library = library.linalg if room else library
    for name in ("asnumpy", "nothing", "__nothing__"):
        with pytest.raises(AttributeError, match=rf"^xdev\.fake{room} has no '{name}'"):
            getattr(library, name)
