"""Whether two results say the same, asked before anything is compared for speed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xdev.errors import XdevError
from xdev.transfer import to_numpy

# How many spacings of the coarser dtype two right answers may lie apart: libraries
# round, fuse and order their steps differently.
SPACINGS = 64
# The same for values that cancelled to near zero, against the largest value.
CANCELLED = 4

Array = NDArray[Any]


class ResultsDifferError(XdevError, ValueError):
    """Two candidates of a comparison returned different results."""


def to_host(result: object) -> object:
    """Copy a result, or each part of a mapping or of a list of arrays, to the host.

    A copy always, since the next candidate may write into the same buffer.
    """
    if isinstance(result, Mapping):
        return {key: to_host(part) for key, part in result.items()}
    if isinstance(result, tuple | list) and any(map(_has_parts, result)):
        return tuple(map(to_host, result))
    if result is None or isinstance(result, str):
        return result
    if hasattr(result, "shape"):
        return np.array(to_numpy(result))
    return np.asarray(result)


def _has_parts(part: object) -> bool:
    """Whether a part of a list is an array, or has arrays for parts itself."""
    if isinstance(part, tuple | list):
        return any(map(_has_parts, part))
    return isinstance(part, Mapping) or hasattr(part, "shape")


def check_agreement(
    first: tuple[str, object], second: tuple[str, object], rtol: float | None
) -> None:
    """Raise unless two named results, both from :func:`to_host`, agree.

    Parameters
    ----------
    first, second : tuple of str and object
        The candidates' names and results.
    rtol : float or None
        Allowed relative difference of an element; None for 64 spacings of the
        coarser dtype, and 4 spacings of the largest value for what cancelled to near
        zero. Integers and bools must be equal.

    Raises
    ------
    ResultsDifferError
        They differ; the text names both candidates and the largest difference.
    """
    (name, expected), (other, found) = first, second
    difference = _difference(expected, found, rtol)
    if difference is not None:
        raise ResultsDifferError(
            f"{name!r} and {other!r} return different results: {difference}"
        )


def _difference(expected: object, found: object, rtol: float | None) -> str | None:
    """Say in words how two results differ, None where they agree."""
    if isinstance(expected, tuple) and isinstance(found, tuple):
        expected, found = dict(enumerate(expected)), dict(enumerate(found))
    if isinstance(expected, dict) and isinstance(found, dict):
        return _difference_of_parts(expected, found, rtol)
    if not (isinstance(expected, np.ndarray) and isinstance(found, np.ndarray)):
        same = type(expected) is type(found) and expected == found
        return None if same else f"{_kind(expected)} against {_kind(found)}"
    if expected.shape != found.shape:
        return f"shape {expected.shape} against {found.shape}"
    expected, found = np.atleast_1d(expected, found)
    wrong = ~_close(expected, found, rtol)
    if not wrong.any():
        return None
    worst = _worst(expected, found, wrong)
    where = ", ".join(map(str, worst))
    return (
        f"at [{where}] {expected[worst]!s} against {found[worst]!s}, the largest "
        f"difference of {np.count_nonzero(wrong)} of {wrong.size} elements"
    )


def _difference_of_parts(
    expected: dict[Any, object], found: dict[Any, object], rtol: float | None
) -> str | None:
    if expected.keys() != found.keys():
        return f"parts {list(expected)} against {list(found)}"
    for key, part in expected.items():
        difference = _difference(part, found[key], rtol)
        if difference is not None:
            return f"in part {key!r} {difference}"
    return None


def _kind(result: object) -> str:
    if isinstance(result, np.ndarray):
        return f"an array of {result.dtype}"
    if isinstance(result, tuple | dict):  # their parts may be long
        return f"{len(result)} parts"
    return repr(result)


def _close(a: Array, b: Array, rtol: float | None) -> NDArray[np.bool_]:
    """Say which elements agree; NaN agrees with NaN."""
    spacings = [float(np.finfo(x.dtype).eps) for x in (a, b) if x.dtype.kind in "fc"]
    equal = np.asarray(a == b)
    if not spacings or equal.all():
        return equal
    spacing = max(spacings)
    relative = SPACINGS * spacing if rtol is None else rtol
    a, b = (x.astype(np.result_type(x, np.float64)) for x in (a, b))
    with np.errstate(invalid="ignore", over="ignore"):
        size = np.abs(a)
        largest = np.max(size, where=np.isfinite(size), initial=0)
        absolute = CANCELLED * spacing * largest if rtol is None else 0
        close = np.abs(a - b) <= relative * size + absolute
    infinite = np.isinf(a) | np.isinf(b)  # their tolerance would be infinite too
    close = equal | (close & ~infinite) | (np.isnan(a) & np.isnan(b))
    return np.asarray(close)


def _worst(a: Array, b: Array, wrong: NDArray[np.bool_]) -> tuple[int, ...]:
    """Return the index of the largest difference, or of the first where none is."""
    apart = wrong.astype(np.float64)
    if all(np.can_cast(x.dtype, np.complex128, "same_kind") for x in (a, b)):
        with np.errstate(invalid="ignore", over="ignore"):
            a, b = (x.astype(np.result_type(x, np.float64)) for x in (a, b))
            apart = np.where(wrong, np.abs(a - b), 0)
    return tuple(map(int, np.unravel_index(int(np.argmax(apart)), apart.shape)))
