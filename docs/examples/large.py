"""Measure the Mandelbrot set on a grid that need not fit into memory, in workers.

    python docs/examples/large.py          # 10,000 x 10,000 points
    python docs/examples/large.py 50000    # 2.5 billion of them

One worker for each GPU, or for each processor; each computes chunks of the grid, and of
those only sums travel.
"""

import sys

from distributed import Client, progress

import xdev as xp
from xdev.distributed import local_cluster, memory_status

LEFT, RIGHT, BOTTOM, TOP = -2.0, 0.6, -1.2, 1.2


@xp.vectorize(["bool(float64, float64, int32)"])
def stays(real, imaginary, limit):
    """Say whether z → z² + c stays near 0 for so many steps."""
    x = y = 0.0
    for _ in range(limit):
        if x * x + y * y > 4.0:
            return False
        x, y = x * x - y * y + real, 2.0 * x * y + imaginary
    return True


def area(size, limit=200, chunk=2000):
    """Area of what stays, by a grid of size x size points: nothing is computed yet."""
    real = LEFT + (xp.arange(size, chunks=chunk) + 0.5) * ((RIGHT - LEFT) / size)
    imaginary = TOP - (xp.arange(size, chunks=chunk) + 0.5) * ((TOP - BOTTOM) / size)
    share = xp.mean(xp.astype(stays(real, imaginary[:, None], limit), xp.float64))
    return share * (RIGHT - LEFT) * (TOP - BOTTOM)


def main():
    """Compute the area with a progress bar, and say what the workers needed."""
    size = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    with local_cluster(dashboard_address=":0") as cluster, Client(cluster) as client:
        future = client.compute(area(size))
        progress(future, notebook=False)
        print(f"\narea {future.result():.4f} by {size:,} x {size:,} points")
        for worker, devices in memory_status(client).items():
            for device, held in devices.items():
                most = held["max_allocated"] / 1e6
                print(f"{worker} on {device}: at most {most:.0f} MB")


if __name__ == "__main__":
    main()
