"""Whether blocks of memory are tracked: what every small array asks."""

from __future__ import annotations

from typing import final


@final
class Tracking:
    """What :mod:`xdev.memory.tracking` says; to load that takes long.

    Attributes
    ----------
    off : bool
        Whether it is known that nobody tracks.
    """

    # A slot is read in 2 ns, a module's variable in 20.
    __slots__ = ("off",)

    def __init__(self) -> None:
        self.off = False


TRACKING = Tracking()
