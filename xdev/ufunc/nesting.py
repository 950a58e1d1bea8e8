"""Which functions are being typed, one inside the other."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from xdev.ufunc.scalar import ScalarFunction

_CALLING: ContextVar[tuple[ScalarFunction, ...]] = ContextVar("calling", default=())


@contextmanager
def entered(scalar: ScalarFunction) -> Iterator[None]:
    """Refuse a function that calls itself, through others too."""
    calling = _CALLING.get()
    if scalar in calling:
        message = f"{scalar.name} calls itself: write the recursion as a loop"
        raise TypeError(message)
    token = _CALLING.set((*calling, scalar))
    try:
        yield
    finally:
        _CALLING.reset(token)


def innermost() -> ScalarFunction | None:
    """Return the function that is being typed."""
    calling = _CALLING.get()
    return calling[-1] if calling else None
