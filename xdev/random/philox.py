"""Philox-4x32-10: a counter and a key become four random words, without any state.

Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC'11,
https://doi.org/10.1145/2063384.2063405. The functions here are plain Python on scalars,
compiled for every device; words of 32 bits travel in uint64.
"""

from __future__ import annotations

import numpy as np

Word = np.uint64
Words = tuple[Word, Word, Word, Word]

ROUNDS = 10
MULTIPLIER_0, MULTIPLIER_1 = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
WEYL_0, WEYL_1 = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)
LOW, HALF = np.uint64(0xFFFFFFFF), np.uint64(32)


def philox(c0: Word, c1: Word, c2: Word, c3: Word, k0: Word, k1: Word) -> Words:
    """Return the four words of a counter under a key."""
    for _ in range(ROUNDS):
        # What is above 32 bits is left where it is: no product looks at it.
        p0 = MULTIPLIER_0 * (c0 & LOW)
        p1 = MULTIPLIER_1 * (c2 & LOW)
        c0, c1 = (p1 >> HALF) ^ c1 ^ k0, p1
        c2, c3 = (p0 >> HALF) ^ c3 ^ k1, p0
        k0 = k0 + WEYL_0
        k1 = k1 + WEYL_1
    return c0 & LOW, c1 & LOW, c2 & LOW, c3 & LOW


def words32(index: Word, key: Word, call: Word) -> Words:
    """Return the four words of 32 bits that an index of a call has."""
    return philox(
        index & LOW, index >> HALF, call & LOW, call >> HALF, key & LOW, key >> HALF
    )


def words64(index: Word, key: Word, call: Word) -> tuple[Word, Word]:
    """Return the two words of 64 bits that an index of a call has."""
    a, b, c, d = words32(index, key, call)
    return (a << HALF) | b, (c << HALF) | d
