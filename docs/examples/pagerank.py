"""Rank the pages of a web by the links between them: one program, every device.

    XDEV_DEVICE=cpu  python docs/examples/pagerank.py
    XDEV_DEVICE=cuda python docs/examples/pagerank.py

A sparse matrix is a dataclass of arrays; `xdev.adapt` moves it whole.
"""

from dataclasses import dataclass

import numpy as np

import xdev as xp

DAMPING = 0.85  # how likely a reader follows a link, and does not jump elsewhere


@dataclass(frozen=True)
class Matrix:
    """A sparse matrix by rows (CSR), of arrays that :func:`xdev.adapt` moves.

    Row ``i`` has ``values[starts[i]:starts[i + 1]]`` in ``columns[...]``.
    """

    starts: object
    columns: object
    values: object

    def __matmul__(self, x):
        """Multiply by a vector: sums over rows are differences of one running sum."""
        products = self.values * xp.take(x, self.columns)
        running = xp.cumulative_sum(products, include_initial=True)
        return xp.diff(xp.take(running, self.starts))


def matrix_of(sources, targets, pages):
    """Row ``t`` holds, for each link ``s → t``, one over the number of links of s."""
    order = np.lexsort((sources, targets))
    links = np.bincount(sources, minlength=pages)
    starts = np.concatenate([[0], np.cumsum(np.bincount(targets, minlength=pages))])
    return Matrix(starts, sources[order], 1 / links[sources[order]])


def page_rank(matrix, links, tolerance=1e-9):
    """Return the share of readers on each page, once it hardly changes.

    It never stands still on a GPU: each sum is rounded in another order.
    """
    pages = links.shape[0]
    dead = xp.astype(links == 0, xp.float64)  # ends: their readers jump anywhere
    rank = xp.ones_like(dead) / pages
    change = 1.0
    while change > tolerance:
        jumping = (1 - DAMPING) + DAMPING * xp.sum(rank * dead)
        moved = DAMPING * (matrix @ rank) + jumping / pages
        change = float(xp.sum(xp.abs(moved - rank)))
        rank = moved
    return rank


def main():
    """Rank a made-up web in which the first pages are linked to most."""
    pages, rng = 100_000, np.random.default_rng(3)
    sources = rng.integers(0, pages, size=10 * pages)
    targets = (pages * rng.random(sources.size) ** 3).astype(np.int64)
    links = np.bincount(sources, minlength=pages)
    device = xp.default_device()
    web = xp.adapt(device, (matrix_of(sources, targets, pages), links))

    rank = page_rank(*web)
    for page in xp.to_numpy(xp.argsort(rank, descending=True)[:5]):
        print(f"page {page} has {float(rank[int(page)]):.3%} of the readers")
    print(f"of {pages:,} pages, on {xp.device_of(rank)}")


if __name__ == "__main__":
    main()
