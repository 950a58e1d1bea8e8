"""What stands in a kernel's brackets: extents, and the shape of a block on CUDA."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from operator import index
from typing import Any, final

Shape = tuple[int, int, int]
DIMENSIONS = 3
BLOCKS = {1: (256,), 2: (8, 32), 3: (2, 4, 32)}  # where none is given
THREADS = 1024  # CUDA's limit for a block,
DEEP = 64  # for its first of three axes,
WIDEST = 2**31 - 1  # for blocks along the last axis,
MANY = 65535  # and along the others


@final
@dataclass(frozen=True, slots=True)
class Extents:
    """The points that a kernel runs for, and how they are dealt out on CUDA.

    Parameters
    ----------
    dimensions : int
        How many indices there are.
    shape : (int, int, int)
        How many points there are along each; 1 in front where there are fewer.
    block : (int, int, int)
        The threads of a block, likewise.
    """

    dimensions: int
    shape: Shape
    block: Shape

    @property
    def size(self) -> int:
        """The number of points."""
        return prod(self.shape)

    @property
    def whole(self) -> bool:
        """Whether a launch has a thread for each point."""
        pairs = zip(self.shape[:-1], self.block[:-1], strict=True)
        return all(-(-n // m) <= MANY for n, m in pairs)

    @property
    def launch(self) -> tuple[Shape, Shape]:
        """The blocks, and the threads of each, along x, y and z."""
        *others, last = (
            -(-n // m) for n, m in zip(self.shape, self.block, strict=True)
        )
        blocks = *(min(count, MANY) for count in others), last
        z, y, x = blocks
        deep, high, wide = self.block
        return (x, y, z), (wide, high, deep)

    @classmethod
    def read(cls, key: Any, name: str) -> Extents:
        """Return what ``kernel[key]`` means.

        Raises
        ------
        TypeError
            It holds something that is no integer.
        ValueError
            There are more than three extents, a negative one, or too many points; or
            the block is none that CUDA has.
        """
        given, block = key, None
        if isinstance(key, tuple) and key and isinstance(key[0], tuple):
            if len(key) != 2:  # noqa: PLR2004 - extents and block
                message = f"{name}[…] takes extents and a block: {name}[(n,), 256]"
                raise ValueError(message)
            given, block = key
        extents = _integers(given, name, "extents")
        if not 1 <= len(extents) <= DIMENSIONS or min(extents) < 0:
            message = (
                f"{name}[{_text(key)}]: a kernel has one to three extents of at least "
                f"0; a block goes beside a tuple of them, {name}[(n,), 256]"
            )
            raise ValueError(message)
        if prod(extents) >= 2**63:
            message = f"{name}[{_text(key)}] has too many points: at most 2**63 - 1"
            raise ValueError(message)
        if block is None:
            threads = BLOCKS[len(extents)]
        else:
            threads = _integers(block, name, "a block")
            _check(threads, len(extents), f"{name}[{_text(key)}]")
        if -(-extents[-1] // threads[-1]) > WIDEST:
            message = (
                f"{name}[{_text(key)}] has more than {WIDEST:,} blocks along its last "
                "axis: pass a wider block, or more extents"
            )
            raise ValueError(message)
        return cls(len(extents), _filled(extents), _filled(threads))


def _integers(given: Any, name: str, what: str) -> tuple[int, ...]:
    each = given if isinstance(given, tuple) else (given,)
    try:
        return tuple(map(index, each))
    except TypeError:
        message = f"{name}[…]: {what} must be integers, not {_text(given)}"
        raise TypeError(message) from None


def _check(threads: tuple[int, ...], dimensions: int, what: str) -> None:
    if len(threads) != dimensions or min(threads) < 1:
        message = (
            f"{what}: a block has as many axes as there are extents ({dimensions}), "
            "each of at least one thread"
        )
        raise ValueError(message)
    if prod(threads) > THREADS or (dimensions == DIMENSIONS and threads[0] > DEEP):
        message = (
            f"{what}: a block has at most {THREADS} threads, {DEEP} along the first of "
            "three axes"
        )
        raise ValueError(message)


def _filled(values: tuple[int, ...]) -> Shape:
    first, second, third = (1,) * (DIMENSIONS - len(values)) + values
    return first, second, third


def _text(key: Any) -> str:
    return ", ".join(map(repr, key)) if isinstance(key, tuple) else repr(key)
