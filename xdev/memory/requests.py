"""What callers ask of a pool, checked: bytes to give back, handles of streams."""

from __future__ import annotations

from operator import index


def enough_bytes(nbytes: int | None) -> int | None:
    """Return how much a reclaim shall give back, or raise TypeError or ValueError."""
    if nbytes is None:
        return None
    try:
        enough = index(nbytes)
    except TypeError:
        message = f"{nbytes!r} cannot be reclaimed: give bytes as an int, such as 2**30"
        raise TypeError(f"{message}, or None for all") from None
    if enough < 0:
        message = f"{nbytes} B cannot be reclaimed: ask for 0 or more, or None"
        raise ValueError(message)
    return enough


HANDLES = 1 << 64  # every stream's handle is below


def handle_of(stream: object) -> int:
    """Return a stream's handle, or raise TypeError or ValueError."""
    way = "use an int such as stream.ptr, or 0 for the default stream"
    try:
        handle = index(stream)  # type: ignore[arg-type]
    except TypeError:
        message = f"stream={stream!r} is not the handle of a stream: {way}"
        raise TypeError(message) from None
    if not 0 <= handle < HANDLES:
        raise ValueError(f"stream={handle} is no handle, negative or too large: {way}")
    return handle
