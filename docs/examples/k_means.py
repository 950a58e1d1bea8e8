"""Find clusters of points by k-means (Lloyd's algorithm): one program, every device.

    XDEV_DEVICE=cpu  python docs/examples/k_means.py
    XDEV_DEVICE=cuda python docs/examples/k_means.py

Products and reductions of the standard, and random values that are the same on every
device.
"""

import xdev as xp
from xdev import memory
from xdev.random import default_rng

CENTRES = [[-4.0, 0.0], [0.0, 3.0], [4.0, -1.0], [1.0, -5.0]]
SPREAD = 0.7  # of the points around their centre


def scattered(count, rng):
    """Points around CENTRES, shape (count, 2), in random order."""
    centres = xp.asarray(CENTRES)
    chosen = rng.integers(0, centres.shape[0], size=count)
    return xp.take(centres, chosen, axis=0) + SPREAD * rng.standard_normal((count, 2))


def nearest(points, centres):
    """Index of the centre that is nearest to each point."""
    # |p - c|² without |p|², which is the same for all centres.
    lengths = xp.sum(centres * centres, axis=1)
    return xp.argmin(lengths - 2 * xp.matmul(points, centres.T), axis=1)


def means(points, labels, count):
    """Mean of the points of each label."""
    all_labels = xp.arange(count, device=xp.device_of(points))
    members = xp.astype(all_labels[:, None] == labels, points.dtype)
    return xp.matmul(members, points) / xp.sum(members, axis=1)[:, None]


def k_means(points, centres, limit=100):
    """Move each centre to the mean of its points, until none moves any more."""
    for _ in range(limit):
        moved = means(points, nearest(points, centres), centres.shape[0])
        still = bool(xp.all(xp.abs(moved - centres) < 1e-9))
        centres = moved
        if still:
            break
    return centres


def main():
    """Cluster 200,000 points, print the centres found, and the memory it took."""
    points = scattered(200_000, default_rng(1))
    start = xp.asarray([[-1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.0, -1.0]])

    for x, y in xp.to_numpy(k_means(points, start)):
        print(f"centre at {x:6.3f} {y:6.3f}")
    device = xp.device_of(points)
    print(f"on {device}, at most {memory.max_allocated(device) / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
