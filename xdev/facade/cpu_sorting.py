"""Stable sorting in host memory, with the quickest of NumPy's kinds that gives it.

NumPy's stable kind is a radix sort for integers of up to 16 bits, and Timsort for all
else: the best there is for what lies in ordered runs already, and some ten times slower
than its quick kind, made of SIMD instructions, for what does not.
"""

from __future__ import annotations

from typing import Any

import numpy as np

FEW = 256  # elements, of which the stable kind makes a sorted copy as quickly
FEW_ORDERED = 512  # or finds the order
MOST = 2**31  # elements whose index leaves half of a key's bits free
SHORT, LONG = 64, 4096  # lines: too short for SIMD; long enough to look for many runs
PROBES, PROBE = 16, 12  # stretches of a long line that are looked at; their elements

RADIX = frozenset("?bBhH")
INTEGERS = frozenset("ilqILQ")
REAL = frozenset("efd")
HALF = "e"  # whose quick kind puts -0.0 before negative numbers on some processors
QUICK = INTEGERS | REAL
NUMBERS = QUICK | RADIX

UINT64 = np.dtype(np.uint64)


def sort(x: Any, *, axis: Any, descending: bool, stable: bool) -> Any:
    """Return a sorted copy, bit for bit as NumPy's stable kind makes it.

    Parameters
    ----------
    x : numpy.ndarray
        Of any data type; those of derived classes are left to their own ways.
    axis : int
        Along which.
    descending : bool
        Largest first; equal elements keep their order.
    stable : bool
        Unless it is asked for, zeros and NaN may change their sign.

    Raises
    ------
    numpy.exceptions.AxisError
        There is no such axis.
    """
    if descending:  # flipped before and after
        return np.flip(
            sort(np.flip(x, axis), axis=axis, descending=False, stable=stable), axis
        )
    char, result = x.dtype.char, x.copy("K")
    if x.size < FEW or char not in QUICK or _is_for_timsort(x, axis):
        result.sort(axis, stable=stable or char in RADIX or char == HALF)
    elif char == HALF:
        result = np.take_along_axis(x, _order(x, axis), axis)
    else:
        result.sort(axis)
        if stable and char in REAL:
            _restore(result.swapaxes(axis, -1), x.swapaxes(axis, -1))
    return result


def argsort(x: Any, *, axis: Any, descending: bool, stable: bool) -> Any:
    """Return the indices that NumPy's stable kind gives; without it, some that sort.

    Parameters and errors are those of :func:`sort`.
    """
    if descending:
        flipped = np.flip(x, axis)
        order = argsort(flipped, axis=axis, descending=False, stable=stable)
        return x.shape[axis] - 1 - np.flip(order, axis)
    char, few = x.dtype.char, not FEW_ORDERED <= x.size <= MOST
    if few or char not in QUICK or _is_for_timsort(x, axis):
        return x.argsort(axis, stable=stable or char in RADIX)
    return _order(x, axis)


def _is_for_timsort(x: Any, axis: Any) -> bool:
    """Say whether Timsort is right: few elements, or what looks like ordered runs.

    So it does for what is no axis of the array, which NumPy must refuse.
    """
    if type(x) is not np.ndarray or type(axis) is not int:
        return True
    if not -x.ndim <= axis < x.ndim:
        return True
    count = x.shape[axis]
    if count < SHORT:
        return True
    first = x.swapaxes(axis, -1)[(0,) * (x.ndim - 1)]  # it stands for all lines
    stretches = 1 if count < LONG else PROBES
    step = count // stretches
    probes = first[: step * stretches].reshape(stretches, step)[:, :PROBE].tolist()
    return all(p in (sorted(p), sorted(p, reverse=True)) for p in probes)


def _restore(ordered: Any, x: Any) -> None:
    """Put those bits back that the quick kind may change: of zeros and of NaN.

    Those that compare equal lie together in a sorted line, stably in their own order.
    """
    zeros = ordered == 0
    if zeros.any():
        ordered[zeros] = x[x == 0]
    if np.isnan(ordered[..., -1]).any():
        ordered[np.isnan(ordered)] = x[np.isnan(x)]


def _order(x: Any, axis: int) -> Any:
    """Return the stable order by sorting keys that hold an index in their lowest bits.

    Keys whose other bits lack room are cut, and those that are alike then are put in
    order afterwards.
    """
    keys, low, width = _keys(x)
    bits = (x.shape[axis] - 1).bit_length()
    cut = max(0, width + bits - 64)
    if cut:
        exact = _trailing_zeros(keys) >= cut
        keys >>= UINT64.type(cut)
        cut = 0 if exact else cut
    index = _sort_with_index(keys, axis)
    lines = keys.swapaxes(axis, -1)
    alike = (lines[..., 1:] ^ lines[..., :-1]) <= index if cut else None
    keys &= index
    order = keys.view(np.intp)
    if alike is not None and alike.any():
        _untie(order.swapaxes(axis, -1), alike, x.swapaxes(axis, -1), low, cut)
    return order


def _keys(x: Any, low: int | None = None) -> tuple[Any, int, int]:
    """Return new 64-bit integers from 0 that order as ``x`` does.

    All zeros have one key, and all NaN the largest.

    Parameters
    ----------
    x : array
        Of integers or floats.
    low : int, optional
        What is 0; the least element unless given.

    Returns
    -------
    array, int, int
        The keys; what is 0; the bits of the largest key, where that is the least.
    """
    if x.dtype.kind == "f":
        keys = _sign_and_size(x)
    else:
        keys = x.astype(np.int64 if x.dtype.kind == "i" else UINT64, order="C")
    least, largest = int(keys.min()), int(keys.max())
    low = least if low is None else low
    keys = keys.view(UINT64)
    keys -= UINT64.type(low % 2**64)  # modulo 2^64, so that signs do not matter
    return keys, low, (largest - low).bit_length()


def _sort_with_index(keys: Any, axis: int) -> Any:
    """Sort keys in place, with an index in lowest bits; return the mask of those."""
    count = keys.shape[axis]
    bits = (count - 1).bit_length()
    along = [1] * keys.ndim
    along[axis] = count
    keys <<= UINT64.type(bits)
    keys |= np.arange(count, dtype=UINT64).reshape(along)
    keys.sort(axis)
    return UINT64.type((1 << bits) - 1)


def _sign_and_size(x: Any) -> Any:
    """Return floats as the int64 that their bits are: a sign, and a size."""
    native = x.astype(x.dtype.newbyteorder("="), order="C")
    whole = np.dtype(f"i{x.dtype.itemsize}")
    infinite = int(np.array(np.inf, native.dtype).view(whole))
    sizes = native.view(whole)
    signs = sizes >> (8 * whole.itemsize - 1)  # 0 or -1
    sizes ^= signs & np.iinfo(whole).max
    sizes -= signs
    if sizes.min() < -infinite:  # NaN with a sign
        sizes[sizes < -infinite] = infinite + 1
    np.minimum(sizes, infinite + 1, out=sizes)
    return sizes.astype(np.int64, copy=False)


def _trailing_zeros(keys: Any) -> int:
    """Return how many of their lowest bits are 0 in all keys."""
    bits = int(np.bitwise_or.reduce(keys, axis=None))
    return (bits & -bits).bit_length() - 1


def _untie(order: Any, alike: Any, x: Any, low: int, cut: int) -> None:
    """Order stretches of equal cut keys by the bits that were cut off.

    Parameters
    ----------
    order : array of intp
        By cut keys along the last axis; is mended.
    alike : array of bool
        Where an element has the cut key of the one before it, from the second on.
    x : array
        What is sorted.
    low, cut : int
        The element whose key is 0; how many bits were cut off.
    """
    tied = np.zeros(order.shape, bool)
    tied[..., 1:] = alike
    first = ~tied
    tied[..., :-1] |= alike
    where, indices = np.nonzero(tied), order[tied]
    rest, *_ = _keys(x[(*where[:-1], indices)], low)
    rest &= UINT64.type((1 << cut) - 1)
    rest &= _sort_with_index(rest, 0)
    stretches = np.cumsum(first[tied], dtype=UINT64)[rest]
    stretches &= _sort_with_index(stretches, 0)
    order[tied] = indices[rest[stretches]]


MANY = 2048  # elements from which the order found here pays for the places of values
_unique: Any = getattr(np.unique, "__wrapped__", np.unique)
_UniqueAll: Any = type(np.unique_all(np.empty(0)))
_UniqueCounts: Any = type(np.unique_counts(np.empty(0)))
_UniqueInverse: Any = type(np.unique_inverse(np.empty(0)))


def unique_all(x: Any) -> Any:
    """Return what NumPy's function of this name does."""
    if x.size < MANY or x.dtype.char not in QUICK:
        return _UniqueAll(*_unique(x, True, True, True, equal_nan=False))
    return _sorted_all(x)


def unique_counts(x: Any) -> Any:
    """Return what NumPy's function of this name does."""
    if x.dtype.char == HALF:
        result = _sorted_all(x)
        return _UniqueCounts(result.values, result.counts)
    return _UniqueCounts(*_unique(x, False, False, True, equal_nan=False))


def unique_inverse(x: Any) -> Any:
    """Return what NumPy's function of this name does."""
    if x.dtype.char == HALF:
        result = _sorted_all(x)
        return _UniqueInverse(result.values, result.inverse_indices)
    return _UniqueInverse(*_unique(x, False, True, equal_nan=False))


def unique_values(x: Any) -> Any:
    """Return the distinct values, in ascending order."""
    if x.dtype.char not in NUMBERS:
        return _unique(x, equal_nan=False)
    # NumPy puts some into a hash table, which takes up to 300 times as long.
    ordered = sort(x.ravel(), axis=0, descending=False, stable=False)
    return ordered[_changes(ordered)]


def _sorted_all(x: Any) -> Any:
    """Return what NumPy's ``unique_all`` does, by the order found here."""
    flat = x.ravel()
    order = argsort(flat, axis=0, descending=False, stable=True)
    ordered = flat[order]
    changes = _changes(ordered)
    inverse = np.empty(flat.size, np.intp)
    inverse[order] = np.cumsum(changes) - 1
    starts = changes.nonzero()[0]
    counts = np.diff(starts, append=flat.size)
    return _UniqueAll(ordered[starts], order[starts], inverse.reshape(x.shape), counts)


def _changes(ordered: Any) -> Any:
    """Return where an element differs from the one before it."""
    changes = np.ones(ordered.shape, bool)
    np.not_equal(ordered[1:], ordered[:-1], out=changes[1:])
    return changes
