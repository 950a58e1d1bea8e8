"""Size classes: what a request is rounded to [B]."""

from __future__ import annotations

from xdev.memory.blocks import round_up


def multiple(nbytes: int, quantum: int) -> int:
    """Round up to a multiple of the quantum."""
    return round_up(nbytes, quantum)


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


def asked(nbytes: int, quantum: int) -> int:  # noqa: ARG001 - one signature for all
    """Grant what was asked, and one byte for nothing."""
    return max(1, nbytes)
