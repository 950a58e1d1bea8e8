"""The library of fake arrays: what NumPy and CuPy both have, on fake arrays.

It stands where ``cupy`` stands on CUDA: ``xdev.namespace(x)`` gives it, for what the
standard does not have.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np

from xdev.device.fake.arrays import FakeArray, strict
from xdev.device.identity import Device

FIRST = Device("fake")  # where creation functions put their results, as CuPy's do

#: What is in NumPy's namespaces and not in CuPy's.
NOT_IN_CUPY = frozenset(
    (
        *("ScalarType", "True_", "False_", "asmatrix", "block", "bmat"),
        *("busday_count", "busday_offset", "busdaycalendar", "bytes_", "char"),
        *("character", "clongdouble", "core", "ctypeslib", "datetime64"),
        *("datetime_as_string", "datetime_data", "dtypes", "einsum_path", "emath"),
        *("errstate", "f2py", "flexible", "frompyfunc", "fromregex", "geomspace"),
        *("get_include", "getbufsize", "geterr", "geterrcall", "histogram_bin_edges"),
        *("info", "insert", "is_busday", "isnat", "little_endian", "longdouble"),
        *("ma", "matrix", "matvec", "memmap", "nanpercentile", "nanquantile"),
        *("ndenumerate", "nditer", "nested_iters", "object_", "polyder", "polydiv"),
        *("polyint", "rec", "recarray", "record", "sctypeDict", "setbufsize"),
        *("seterr", "seterrcall", "show_runtime", "spacing", "str_", "strings"),
        *("test", "timedelta64", "typecodes", "unstack", "vecdot", "vecmat", "void"),
        *("linalg.diagonal", "linalg.matrix_norm", "linalg.multi_dot"),
        *("linalg.outer", "linalg.svdvals", "linalg.tensordot", "linalg.test"),
        *("linalg.trace", "linalg.vecdot", "linalg.vector_norm", "fft.test"),
    )
)
#: CuPy's ufuncs that have a method; all have ``outer``.
METHODS_IN_CUPY = {
    "reduce": ("add", "multiply"),
    "accumulate": ("add", "multiply"),
    "reduceat": ("add",),
    "at": (
        *("add", "bitwise_and", "bitwise_or", "bitwise_xor"),
        *("maximum", "minimum", "subtract"),
    ),
}
#: Rooms of their own: random numbers and tests are not wrapped.
ROOMS = ("linalg", "fft")
#: Functions that upload host arrays when asked to.
UPLOADS = ("array", "asarray", "asanyarray", "ascontiguousarray", "asfortranarray")


def is_in_cupy(name: str) -> bool:
    """Say whether CuPy has what NumPy has under a name.

    Examples
    --------
    >>> is_in_cupy("add.reduce"), is_in_cupy("hypot.reduce"), is_in_cupy("insert")
    (True, False, False)
    """
    root, _, rest = name.partition(".")
    having = METHODS_IN_CUPY.get(rest)
    return not (
        root in NOT_IN_CUPY
        or name in NOT_IN_CUPY
        or (having is not None and root not in having)
    )


class FakeNamespace(ModuleType):
    """NumPy's functions by name, wrapped at their first use."""

    ndarray = FakeArray

    def __init__(self, name: str, room: str = "") -> None:
        super().__init__(name, __doc__)
        self._room = room

    def __getattr__(self, name: str) -> Any:
        full = f"{self._room}{name}"
        if full in NOT_IN_CUPY or name.startswith("_"):
            message = f"{self.__name__} has no {name!r}, as cupy has none"
            raise AttributeError(message)
        try:
            found = getattr(getattr(np, self._room[:-1]) if self._room else np, name)
        except AttributeError as error:
            message = (
                f"{self.__name__} has no {name!r}: it has what NumPy and CuPy share; "
                f"xdev.to_numpy(x) copies an array to the host"
            )
            raise AttributeError(message) from error
        if isinstance(found, ModuleType):
            found = self._opened(name)
        elif callable(found) and not isinstance(found, type):
            found = _wrapped(f"{self.__name__}.{name}", found, name in UPLOADS)
        setattr(self, name, found)
        return found

    def _opened(self, name: str) -> ModuleType:
        if name not in ROOMS:
            message = f"{self.__name__} has no {name!r}: use xdev's own"
            raise AttributeError(message)
        return FakeNamespace(f"{self.__name__}.{name}", f"{name}.")


def _wrapped(name: str, function: Any, uploads: bool) -> Any:
    checked = strict(name, function)

    def call(*args: Any, **options: Any) -> Any:
        if uploads and isinstance(args[0], np.ndarray):
            copied = args[0].copy(order="K")
            return FakeArray(function(copied, *args[1:], **options), FIRST)
        return checked(*args, **options)

    call.__name__, call.__doc__ = name.rpartition(".")[2], function.__doc__
    return call


fake = FakeNamespace("xdev.fake")
