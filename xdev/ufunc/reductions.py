"""Reductions that are refused, in the same words on every device."""

from __future__ import annotations

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


def case(words: str) -> str | None:
    """Return which refusal NumPy's text is, None for other errors."""
    return next((key for key in REFUSED if key in words), None)


def refusal(key: str, name: str) -> ValueError:
    """Return the error for a reduction.

    Parameters
    ----------
    key : str
        The case, of the table.
    name : str
        The function's.

    Examples
    --------
    >>> str(refusal("no identity", "minus"))
    'minus.reduce of nothing has no identity: pass initial=, or give the function an
    identity, @vectorize(identity=...)'
    """
    return ValueError(REFUSED[key].format(name))
