"""Policies: pure decisions about sizes and fits, one value a policy.

``split`` is the default; ``binned`` trades memory for fewer size classes; ``simple``
is for teaching; ``none`` hands every request to the source; ``async`` to the driver's
own pool, which keeps free memory and follows the streams itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdev.errors import ConfigurationError, quoted
from xdev.memory.blocks import Policy, ceiling, round_up

if TYPE_CHECKING:
    from xdev.memory.blocks import Chunk, Ordered

__all__ = ["POLICIES", "Policy", "named"]

MIB = 1 << 20
SMALL = MIB  # requests up to here share small segments [B]
LARGE = 10 * MIB  # requests from here have segments of their own [B]
WASTE = 8  # a snug fit is at most one part in so many larger than asked
QUANTUM = 512  # and never counts less than this as waste [B]


# Size classes: what a request is rounded to [B].


def eighth(nbytes: int, quantum: int) -> int:
    """Round up to one of eight classes per doubling: at most 12.5 % is wasted.

    Examples
    --------
    >>> eighth(8192, 512), eighth(8193, 512), eighth(100_000, 512)
    (8192, 9216, 106496)
    """
    nbytes = round_up(nbytes, quantum)
    step = 1 << max(0, (nbytes - 1).bit_length() - 4)
    return round_up(nbytes, max(step, quantum))


# Growth: how much to ask a source for when nothing free fits [B].


def exact(nbytes: int, quantum: int) -> int:  # noqa: ARG001 - one signature for all
    """Take what was asked for, and one byte for nothing; also as a class."""
    return max(1, nbytes)


def shared(granted: int, quantum: int) -> int:  # noqa: ARG001 - one signature for all
    """Ask for a segment that requests of like size share: PyTorch's rule.

    2 MiB up to 1 MiB, 20 MiB below 10 MiB, from there whole pairs of MiB.
    """
    if granted <= SMALL:
        return 2 * SMALL
    if granted < LARGE:
        return 2 * LARGE
    return round_up(granted, 2 * MIB)


# Fits: which free chunk of a free_list serves a request.


def best(free_list: Ordered, nbytes: int) -> Chunk | None:
    """Return the smallest chunk that is large enough, of those the lowest; O(log n)."""
    chunk: Chunk | None = ceiling(free_list, nbytes)
    return chunk


def snug(free_list: Ordered, nbytes: int) -> Chunk | None:
    """Return the smallest chunk, where at most an eighth of it would be wasted."""
    chunk = best(free_list, nbytes)
    if chunk is None or chunk.nbytes > nbytes + max(nbytes // WASTE, QUANTUM):
        return None
    return chunk


def first(free_list: Ordered, nbytes: int) -> Chunk | None:
    """Return the chunk of lowest address that is large enough; O(n)."""
    large = (chunk for *_, chunk in free_list if chunk.nbytes >= nbytes)
    return min(large, key=lambda chunk: chunk.address, default=None)


_NONE = Policy("none", exact, exact, best, small=0, splits=False, keeps=False)
_ALL = (
    Policy("split", round_up, shared, best, small=SMALL, splits=True, keeps=True),
    Policy("binned", eighth, exact, snug, small=0, splits=False, keeps=True),
    Policy("simple", round_up, exact, first, small=0, splits=True, keeps=True),
    *(_NONE, _NONE._replace(name="async", asynchronous=True)),
)
POLICIES = {policy.name: policy for policy in _ALL}


def named(name: str | Policy) -> Policy:
    """Return the policy of a name; a policy is itself."""
    if isinstance(name, Policy):
        return name
    try:
        return POLICIES[name]
    except (KeyError, TypeError):
        names = ", ".join(POLICIES)
        message = f"no memory policy is called {quoted(name)}: use one of {names}"
        raise ConfigurationError(message) from None
