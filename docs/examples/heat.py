"""Let heat spread through a plate with cold edges: one program, every device.

    XDEV_DEVICE=cpu  python docs/examples/heat.py
    XDEV_DEVICE=cuda python docs/examples/heat.py

A ufunc writes into a part of a buffer that is there: the loop allocates nothing.
"""

import math

import xdev as xp
from xdev import memory


@xp.vectorize
def spread(here, north, south, west, east, rate):
    """Temperature of one cell after one step of time, from its neighbours'."""
    return here + rate * (north + south + west + east - 4 * here)


def heated(size):
    """A plate whose temperature is a hill: sin(πx) sin(πy), 0 at the edges."""
    hill = xp.sin(xp.linspace(0, math.pi, size))
    return hill[:, None] * hill


def diffused(plate, steps, rate=0.2):
    """Temperatures after some steps; ``rate`` is at most 1/4, or they explode."""
    now, then = xp.asarray(plate, copy=True), xp.asarray(plate, copy=True)
    for _ in range(steps):
        spread(
            now[1:-1, 1:-1],
            now[:-2, 1:-1],
            now[2:, 1:-1],
            now[1:-1, :-2],
            now[1:-1, 2:],
            rate,
            out=then[1:-1, 1:-1],  # the edges stay as they are
        )
        now, then = then, now
    return now


def main():
    """Cool a plate, and compare the hottest spot with the exact solution."""
    size, steps, rate = 257, 1000, 0.2
    with memory.peak() as peak:
        plate = diffused(heated(size), steps, rate)

    # The hill keeps its form and shrinks by the same factor at each step.
    factor = 1 - 8 * rate * math.sin(math.pi / (size - 1) / 2) ** 2
    print(f"hottest spot {float(xp.max(plate)):.6f}, exactly {factor**steps:.6f}")
    print(f"on {xp.device_of(plate)}, in buffers of {peak.nbytes / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
