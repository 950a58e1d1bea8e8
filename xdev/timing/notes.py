"""What a reader of a measurement must know, in sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdev.timing.text import format_time

if TYPE_CHECKING:
    from xdev.timing.result import Timing

# A first call is worth a word where it took so long [s], and so many times a later one.
LONG_FIRST, FIRST_TIMES = 0.1, 10


def notes_of(timing: Timing) -> list[str]:
    """Return a sentence for each thing that the figures alone do not tell."""
    found = []
    if timing.launch_bound:
        launch = format_time(min(timing.launch), timing.precision)
        found.append(
            f"launch-bound: the device waited for the host, where a call takes {launch}"
        )
    if timing.waits:
        found.append(
            "each call waits for the device: it copies to the host, synchronises, or "
            "makes more launches than its queue holds"
        )
    if timing.elsewhere:
        found.append(
            "work went on after that of the current stream, and device time leaves it "
            "out: time inside `with stream:`"
        )
    if timing.throttled:
        low, high = (f"{rate(timing.rates) / 1e9:.3g}" for rate in (min, max))
        why = f" ({', '.join(timing.slowed_by)})" if timing.slowed_by else ""
        found.append(f"the device's clock ran at {low} to {high} GHz{why}")
    first = timing.compile_time
    if first > max(LONG_FIRST, FIRST_TIMES * timing.worst):
        found.append(f"the first call took {format_time(first)}, which is in no figure")
    return found
