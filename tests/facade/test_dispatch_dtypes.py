"""Data types: xdev's, the array's library's, and other libraries', for each other."""

import array_api_strict
import numpy as np
import pytest

import xdev

NAMES = [
    "bool",
    *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
    *("float32", "float64", "complex64", "complex128"),
]


def own(library, name):
    """Return a library's own data type."""
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
        getattr(array_api_strict, name),
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


def test_limits_of_another_kind_of_dtype_are_refused(library):
    for limits, name in (xdev.finfo, "int8"), (xdev.iinfo, "float32"):
        x = library.put(np.zeros(2, name))
        for kind in x, x.dtype:
            with pytest.raises((TypeError, ValueError)):
                limits(kind)


@pytest.mark.parametrize("name", NAMES)
def test_kinds_and_limits_are_the_same_of_arrays_and_types_of_every_library(
    library, name
):
    x = library.put(np.zeros(2, name))
    kinds = ("bool", "signed integer", "unsigned integer", "integral", "real floating")

    for kind in (*kinds, "complex floating", "numeric"):
        assert xdev.isdtype(x.dtype, kind) == np.isdtype(np.dtype(name), kind)
    if "int" in name:
        assert int(xdev.iinfo(x).max) == int(xdev.iinfo(x.dtype).max)
    if name.startswith("float"):
        assert float(xdev.finfo(x).eps) == float(xdev.finfo(x.dtype).eps)
        assert float(xdev.finfo(x).eps) == np.finfo(name).eps


#: Of one kind, or real and complex: what the standard lays down.
PAIRS = [
    ("int8", "int16"),
    ("int64", "int8"),
    ("uint8", "uint8"),
    ("uint8", "int16"),
    ("float32", "float64"),
    ("float64", "float32"),
    ("float32", "complex64"),
    ("complex64", "float64"),
    ("complex64", "complex128"),
]


@pytest.mark.parametrize(("name", "other"), PAIRS)
def test_promotion_is_the_standards_whoever_names_the_types(library, name, other):
    x = library.put(np.zeros(2, name))
    wanted = own(library, np.result_type(name, other).name)
    safe = np.can_cast(name, other)

    for kind in (getattr(xdev, other), own(library, other)):
        for one in (x, x.dtype):
            assert xdev.result_type(one, kind) == wanted
            assert xdev.result_type(kind, one) == wanted
            assert xdev.can_cast(one, kind) == safe


def test_types_that_only_the_library_has_are_its_own():
    torch = pytest.importorskip("torch")
    x = torch.ones(3, dtype=torch.bfloat16)

    assert xdev.add(x, 1).dtype == torch.bfloat16
    assert xdev.astype(xdev.ones_like(x), torch.float16).dtype == torch.float16
    assert xdev.isdtype(torch.bfloat16, "real floating")
    assert not xdev.isdtype(torch.bfloat16, xdev.float32)
    assert xdev.finfo(torch.bfloat16).bits == 16


def test_unknown_types_are_refused_with_the_known_ones(library):
    x = library.put(np.zeros(2))

    for wrong in ("float33", 3.5, object()):
        with pytest.raises(TypeError, match=r"xdev\.bool"):
            xdev.astype(x, wrong)
        with pytest.raises(TypeError, match=r"xdev\.bool"):
            xdev.zeros(2, dtype=wrong, device=xdev.device_of(x))
