"""Data types: xdev's, the array's library's, and other libraries', for each other."""

from fractions import Fraction

import array_api_strict as strict
import numpy as np
import pytest

import xdev

NAMES = [
    "bool",
    *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
    *("float32", "float64", "complex64", "complex128"),
]


def own(library, name):
    return library.put(np.zeros(2, name)).dtype


@pytest.mark.parametrize("name", NAMES)
def test_functions_with_dtype_take_anybodys(library, name):
    x = library.put(np.asarray([0.0, 1.0]))
    wanted = own(library, name)

    for kind in (
        name,
        np.dtype(name),
        np.dtype(name).type,
        getattr(xdev, name),
        getattr(strict, name),
        wanted,
    ):
        assert xdev.astype(x, kind).dtype == wanted
        assert xdev.zeros_like(x, dtype=kind).dtype == wanted
        assert xdev.zeros(2, dtype=kind, device=xdev.device_of(x)).dtype == wanted
        assert xdev.asarray(x, dtype=kind).dtype == wanted
        assert xdev.isdtype(kind, getattr(xdev, name))
        if not isinstance(kind, str):  # a string is a kind, as "real floating"
            assert xdev.isdtype(getattr(xdev, name), kind)
            assert xdev.isdtype(wanted, kind)
        if name.startswith("float"):
            assert xdev.sum(x, dtype=kind).dtype == wanted
            assert xdev.prod(x, dtype=kind).dtype == wanted
            assert xdev.cumulative_sum(x, dtype=kind).dtype == wanted
            assert xdev.finfo(kind).bits == np.finfo(name).bits
        if "int" in name:
            assert int(xdev.iinfo(kind).max) == np.iinfo(name).max


#: Of one kind, or real and complex: what the standard lays down.
PAIRS = "int8:int16 int64:int8 uint8:uint8 uint8:int16 float32:float64 float64:float32"
PAIRS += " float32:complex64 complex64:float64 complex64:complex128"


@pytest.mark.parametrize("pair", PAIRS.split())
def test_promotion_is_the_standards_whoever_names_the_types(library, pair):
    name, other = pair.split(":")
    x = library.put(np.zeros(2, name))
    wanted = own(library, np.result_type(name, other).name)
    safe = np.can_cast(name, other)

    for kind in (getattr(xdev, other), own(library, other)):
        for one in (x, x.dtype):
            assert xdev.result_type(one, kind) == wanted
            assert xdev.result_type(kind, one) == wanted
            assert xdev.can_cast(one, kind) == safe


def test_result_type_of_an_array_is_of_its_library(device):
    x = xdev.ones(2, dtype=xdev.float32, device=device)

    assert xdev.result_type(x, 2.0) == xdev.float32
    assert xdev.result_type(x, np.float64(2)) == xdev.float64
    assert xdev.result_type(x, xdev.complex64, 1j) == xdev.complex64
    for things in ((x, strict.float64), (strict.float64, x), (x, 1.0, strict.float64)):
        assert xdev.result_type(*things) is x.astype(xdev.float64).dtype
    for y in (xdev.float32, x):
        assert xdev.result_type(strict.ones(2), y) is strict.float64
    assert xdev.result_type(np.float32(1), strict.float64) is strict.float64
    with pytest.raises(TypeError, match=r"no.* a data type.*xdev\.float32"):
        xdev.result_type(x, object())


@pytest.mark.parametrize("thing", [range(3), (2, -3), Fraction(1, 2)], ids=str)
def test_what_is_no_data_type_is_told_which_there_are(device, thing):
    x = xdev.ones(2, device=device)
    for call in (
        lambda: xdev.result_type(thing),
        lambda: xdev.result_type(x, thing),
        lambda: xdev.can_cast(x, thing),
        lambda: xdev.can_cast(thing, xdev.int8),
        lambda: xdev.isdtype(thing, "bool"),
        lambda: xdev.astype(x, thing),
        lambda: xdev.zeros(2, dtype=thing, device=device),
    ):
        with pytest.raises(TypeError, match=r"no.* a data type.*xdev\.float32"):
            call()


def test_astype_copies_unless_told_not_to_and_moves_where_told(device):
    x = xdev.ones(3, dtype=xdev.float32, device=device)

    assert xdev.astype(x, xdev.float32) is not x
    assert xdev.astype(x, xdev.float32, copy=False) is x
    assert xdev.device_of(xdev.astype(x, xdev.int8)) == device
    moved = xdev.astype(np.ones(3), xdev.float32, device="fake:1")
    assert xdev.device_of(moved) == "fake:1"
    assert moved.dtype == xdev.float32
