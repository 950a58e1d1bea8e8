"""Data type functions take xdev's and any library's types."""

import array_api_strict as strict
import numpy as np
import pytest

import xdev
from xdev.facade.backends import NAMES


def promotes(one, other):
    try:
        return strict.result_type(getattr(strict, one), getattr(strict, other))
    except TypeError:
        return None


@pytest.mark.parametrize("one", NAMES)
def test_result_type_and_can_cast_are_the_standards(one):
    for other in NAMES:
        wanted = promotes(one, other)
        if wanted is None:
            continue
        name = str(wanted).rpartition(".")[2]
        own = xdev.result_type(getattr(xdev, one), getattr(xdev, other))
        assert own == getattr(xdev, name)
        mixed = xdev.result_type(getattr(strict, one), getattr(xdev, other))
        assert mixed == wanted
        assert xdev.can_cast(getattr(xdev, one), own)
        assert xdev.can_cast(getattr(strict, one), own)


def test_result_type_of_arrays_and_numbers(device):
    x = xdev.ones(2, dtype=xdev.float32, device=device)

    assert xdev.result_type(x, 2.0) == xdev.float32
    assert xdev.result_type(x, np.float64(2)) == xdev.float64
    assert xdev.result_type(x, xdev.complex64, 1j) == xdev.complex64


def test_result_type_of_an_array_is_of_its_library(device):
    x = xdev.ones(2, dtype=xdev.float32, device=device)

    for things in ((x, strict.float64), (strict.float64, x), (x, 1.0, strict.float64)):
        assert xdev.result_type(*things) is x.astype(xdev.float64).dtype
    for y in (xdev.float32, x):
        assert xdev.result_type(strict.ones(2), y) is strict.float64
    assert xdev.result_type(np.float32(1), strict.float64) is strict.float64
    with pytest.raises(TypeError, match=r"nor a data type.*xdev\.float32"):
        xdev.result_type(x, object())


@pytest.mark.parametrize("name", ["float32", "float64", "complex64", "complex128"])
def test_finfo_gives_python_numbers(device, name):
    wanted = strict.finfo(getattr(strict, name))

    for thing in (getattr(xdev, name), np.dtype(name), xdev.ones(1, dtype=name)):
        found = xdev.finfo(thing)
        for field in ("bits", "eps", "max", "min", "smallest_normal"):
            value = getattr(found, field)
            assert type(value) in (int, float)
            assert value == getattr(wanted, field)
    assert xdev.finfo(xdev.ones(1, dtype=name, device=device)).bits == wanted.bits
    assert xdev.finfo(getattr(strict, name)).eps == wanted.eps


@pytest.mark.parametrize("function", [xdev.finfo, xdev.iinfo])
@pytest.mark.parametrize("wrong", ["float33", None, 3.5, object()])
def test_what_is_no_type_is_refused(function, wrong):
    with pytest.raises((TypeError, ValueError)):
        function(wrong)


def test_kinds_that_are_none_are_refused():
    with pytest.raises(ValueError, match="real floating"):
        xdev.isdtype(xdev.float32, "float")
    with pytest.raises(TypeError, match=r"use one of xdev\.bool"):
        xdev.isdtype("float33", "bool")


def test_astype_copies_unless_told_not_to(device):
    x = xdev.ones(3, dtype=xdev.float32, device=device)

    assert xdev.astype(x, xdev.float32) is not x
    assert xdev.astype(x, xdev.float32, copy=False) is x
    assert xdev.device_of(xdev.astype(x, xdev.int8)) == device


def test_astype_moves_where_told():
    moved = xdev.astype(np.ones(3), xdev.float32, device="fake:1")

    assert xdev.device_of(moved) == "fake:1"
    assert moved.dtype == xdev.float32
