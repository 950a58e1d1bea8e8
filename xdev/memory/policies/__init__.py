"""Policies: pure decisions about sizes and fits, one value a policy.

``split`` is the default; ``binned`` trades memory for fewer size classes; ``simple``
is for teaching; ``none`` hands every request to the source; ``async`` to the driver's
own pool, which keeps free memory and follows the streams itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, final

from xdev import _config
from xdev.errors import ConfigurationError
from xdev.memory.policies import classes, fits, growth

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from xdev.memory.blocks import Chunk, Shelf

__all__ = ["POLICIES", "Policy", "named"]


@final
class Policy(NamedTuple):
    """What a heap asks.

    Parameters
    ----------
    name : str
        As in ``Pool(source, policy=name)``.
    granted : (nbytes, quantum) -> int
        The size that a request is rounded to [B].
    grown : (granted, quantum) -> int
        The size to ask the source for when nothing free fits; at least ``granted`` [B].
    fit : (shelf, nbytes) -> Chunk or None
        Which free chunk serves a request.
    small : int
        Requests up to this size share segments of up to twice that size, apart from
        the larger ones; 0 keeps all together [B].
    splits : bool
        Whether the rest of a larger chunk becomes a chunk of its own.
    keeps : bool
        Whether free memory stays with the pool.
    asynchronous : bool
        Whether the source lends and takes back in stream order, and keeps what is free.
    zone : int
        How much stays free behind each block, at least, for guards [B].
    """

    name: str
    granted: Callable[[int, int], int]
    grown: Callable[[int, int], int]
    fit: Callable[[Shelf, int], Chunk | None]
    small: int
    splits: bool
    keeps: bool
    asynchronous: bool = False
    zone: int = 0


def _policies() -> Iterator[Policy]:
    yield Policy(
        "split",
        classes.multiple,
        growth.shared,
        fits.best,
        small=growth.SMALL,
        splits=True,
        keeps=True,
    )
    yield Policy(
        "binned",
        classes.eighth,
        growth.exact,
        fits.snug,
        small=0,
        splits=False,
        keeps=True,
    )
    yield Policy(
        "simple",
        classes.multiple,
        growth.exact,
        fits.first,
        small=0,
        splits=True,
        keeps=True,
    )
    yield Policy(
        "none",
        classes.asked,
        growth.exact,
        fits.best,
        small=0,
        splits=False,
        keeps=False,
    )
    yield Policy(
        "async",
        classes.asked,
        growth.exact,
        fits.best,
        small=0,
        splits=False,
        keeps=False,
        asynchronous=True,
    )


_rules = {policy.name: policy for policy in _policies()}
POLICIES = {name: _rules[name] for name in _config.POLICIES}


def named(name: str | Policy) -> Policy:
    """Return the policy of a name; a policy is itself.

    Raises
    ------
    ConfigurationError
        There is no such policy; the text lists those that are.
    """
    if isinstance(name, Policy):
        return name
    try:
        return POLICIES[name]
    except (KeyError, TypeError):
        known = ", ".join(POLICIES)
        message = f"no memory policy is called {name!r}: use one of {known}"
        raise ConfigurationError(message) from None
