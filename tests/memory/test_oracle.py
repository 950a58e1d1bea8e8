"""No false refusal: every sequence of requests and drops on a heap of a few quanta.

The oracle knows only the blocks alive and what the source has lent. A request can be
served, by some order of the ladder's steps, if it fits between the live blocks of a
segment that must stay (any fit, other streams' memory, merged after a wait), or in what
is left once every segment without a live block has gone back (the exact size).
"""

from itertools import product

import hypothesis
import pytest
from memory_laws import POLICIES, QUANTUM, pools_under

from xdev.errors import OutOfMemoryError
from xdev.testing import FakeSource

pytestmark = pytest.mark.usefixtures("tiny_policy", "few_objects")
CAPACITY = 4 * QUANTUM + 200  # the last bytes serve only who asks for the exact size
SIZES = (400, 2 * QUANTUM, 3 * QUANTUM + 100)
DEEP = hypothesis.settings().max_examples > 50
DEPTH = {"empty": 6, "shared": 5} if DEEP else {"empty": 3, "shared": 3}

#: What a walk starts from: nothing, or one segment that two streams share.
STARTS = {
    "empty": (),
    "shared": (
        ("acquire", 0, 4 * QUANTUM, 1),
        ("drop", 0, 1),
        ("acquire", 0, 400, 1),
        ("acquire", 0, 400, 2),
        ("acquire", 0, 400, 1),
    ),
}


class Heaps:
    """Pools under one cap (of the source or a limit), and the oracle's view of them."""

    def __init__(self, policy, *, limited, count=1):
        self.sources = [
            FakeSource(1 << 30 if limited else CAPACITY) for _ in range(count)
        ]
        self.pools = pools_under(CAPACITY if limited else None, policy, self.sources)
        self.held = [{} for _ in range(count)]
        self.number = 0

    def possible(self, which, nbytes):
        """Say whether some order of the steps serves a request of a pool."""
        stay, gaps = 0, [0]
        for source, held in zip(self.sources, self.held, strict=True):
            for start, size in source.lent.items():
                live = sorted(
                    (block.address, block.nbytes)
                    for block in held.values()
                    if start <= block.address < start + size
                )
                if not live:
                    continue
                stay += size
                if source is self.sources[which]:
                    ends = [start, *(address + taken for address, taken in live)]
                    starts = [*(address for address, _ in live), start + size]
                    gaps += [b - a for a, b in zip(ends, starts, strict=True)]
        return nbytes <= max(*gaps, CAPACITY - stay)

    def acquire(self, which, nbytes, stream):
        possible = self.possible(which, nbytes)
        try:
            block = self.pools[which].acquire(nbytes, stream)
        except OutOfMemoryError:
            served = False
        else:
            served, self.number = True, self.number + 1
            self.held[which][self.number] = block
        assert served == possible
        assert sum(sum(each.lent.values()) for each in self.sources) <= CAPACITY

    def drop(self, which, number):
        del self.held[which][number]


def walk(fresh, start, requests):
    """Run every sequence of requests and drops after a start; return how many.

    From nothing the first request is of the first pool and stream: all are alike then.
    """
    sequences, depth = [STARTS[start]], DEPTH[start]
    first = [request for request in requests if request[::2] == (0, 1)]
    for _ in range(depth):
        longer = []
        for sequence in sequences:
            heaps = run(fresh, sequence)
            choices = requests if sequence else first
            longer += [(*sequence, ("acquire", *request)) for request in choices]
            longer += [
                (*sequence, ("drop", which, number))
                for which, held in enumerate(heaps.held)
                for number in held
            ]
        sequences = longer
    for sequence in sequences:
        run(fresh, sequence)
    return len(sequences)


def run(fresh, sequence):
    heaps = fresh()
    for name, *args in sequence:
        getattr(heaps, name)(*args)
    return heaps


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("limited", [False, True], ids=["source", "limit"])
@pytest.mark.parametrize("policy", [*POLICIES, "tiny"])
def test_a_request_is_refused_only_if_nothing_could_serve_it(policy, limited, start):
    requests = list(product([0], SIZES, [1, 2]))
    sequences = walk(lambda: Heaps(policy, limited=limited), start, requests)
    assert sequences > len(requests) ** DEPTH[start] / 2


@pytest.mark.parametrize("policy", [*POLICIES, "tiny"])
def test_what_the_pools_of_one_limit_cache_refuses_nobody(policy):
    requests = list(product([0, 1], SIZES[1:], [1]))
    fresh = lambda: Heaps(policy, limited=True, count=2)  # noqa: E731
    assert walk(fresh, "empty", requests) > len(requests) ** DEPTH["empty"] / 2
