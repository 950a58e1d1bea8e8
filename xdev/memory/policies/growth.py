"""Growth: how much to ask a source for when nothing free fits [B]."""

from __future__ import annotations

from xdev.memory.blocks import round_up

MIB = 1 << 20
SMALL = MIB  # requests up to here share small segments [B]
LARGE = 10 * MIB  # requests from here have segments of their own [B]


def exact(granted: int, quantum: int) -> int:  # noqa: ARG001 - one signature for all
    """Ask for the one block."""
    return granted


def shared(granted: int, quantum: int) -> int:  # noqa: ARG001 - one signature for all
    """Ask for a segment that requests of like size share.

    2 MiB up to 1 MiB, 20 MiB below 10 MiB, from there whole MiB pairs: PyTorch's rule,
    after CUDA's pages of 2 MiB.

    Examples
    --------
    >>> [shared(mib * MIB, 512) // MIB for mib in (1, 3, 11)]
    [2, 20, 12]
    """
    if granted <= SMALL:
        return 2 * SMALL
    if granted < LARGE:
        return 2 * LARGE
    return round_up(granted, 2 * MIB)
