"""Refusals in words that tell the way out, the same on every device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from xdev._freed import is_freed, use_after_free

if TYPE_CHECKING:
    from collections.abc import Sequence

# NumPy's refusals of a ufunc's call, with the way out.

WAYS = {
    "op_axes": "pass out= of as many dimensions as the array",
    "for reduction operation": "pass out= of the result's shape, or leave it out",
    " input ": "cast the arguments, or pass casting='unsafe'",
    "Cannot cast ufunc": "pass out= of the result's dtype, or casting='unsafe'",
    "non-broadcastable output": "pass out= of the broadcast shape, or leave it out",
    "read-only": "pass out= an array that may be written",
    "to dtype('bool')": "pass where= a bool, or an array of bool, as mask != 0",
    "must be of ArrayType": "pass out= an array of the inputs' device, or a tuple",
    "'out' tuple": "pass one array, or None, for each output",
    "could not be broadcast": "make the axes of inputs and out= match, or be 1",
}


def explain(error: Exception, out: Sequence[Any] | None) -> None:
    """Raise NumPy's error with the way out, if it has one, as its built-in kind."""
    for x in out or ():
        if is_freed(x):
            raise use_after_free(x, "out=") from error
    text = str(error)
    way = next((way for words, way in WAYS.items() if words in text), None)
    if way is not None and raised_by_numpy(error):
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{text}: {way}") from error


def raised_by_numpy(error: Exception) -> bool:
    """Say whether an error is NumPy's own, and not what a user's handler raised."""
    end = error.__traceback__
    while end is not None and end.tb_next is not None:
        end = end.tb_next
    module = "" if end is None else end.tb_frame.f_globals.get("__name__", "")
    return module.partition(".")[0] in {"xdev", "numpy"}


# Reductions that are refused, in the same words on every device.

# Of what NumPy says, the words that tell the case; what users read, and the way out.
REFUSED = {
    "not reorderable": (
        "{}.reduce is not reorderable, so it takes one axis at a time; with "
        "@vectorize(identity=...) it takes several"
    ),
    "where mask": (
        "{}.reduce: where= needs a value to start from: pass initial=, or give the "
        "function an identity, @vectorize(identity=...)"
    ),
    "no identity": (
        "{}.reduce of nothing has no identity: pass initial=, or give the function an "
        "identity, @vectorize(identity=...)"
    ),
}


def reduction_error(key: str, name: str) -> ValueError:
    """Return the error for a reduction.

    Parameters
    ----------
    key : str
        The case, of the table.
    name : str
        The function's.

    Examples
    --------
    >>> str(reduction_error("no identity", "minus"))
    'minus.reduce of nothing has no identity: pass initial=, or give the function an
    identity, @vectorize(identity=...)'
    """
    return ValueError(REFUSED[key].format(name))
