"""Many comparisons of a program with itself: how often one is said to be faster.

The programs are simulated: each call sets a virtual clock forward, by a time that
scatters as a machine's does.
"""

import os

import numpy as np
import pytest

from xdev.timing import compare

RUNS = 300 if os.environ.get("HYPOTHESIS_PROFILE") == "deep" else 100
FALSE = RUNS * 2 // 100
SECONDS = 4e-3


class Machine:
    """A clock, and a way in which times scatter."""

    def __init__(self, seed, scatter):
        self.now = self.state = 0.0
        self.rng = np.random.default_rng(seed)
        self.scatter = scatter

    def program(self, factor=1.0):
        def call():
            self.now += SECONDS * factor * self.scatter(self)

        return call


def independent(machine):
    return machine.rng.lognormal(sigma=0.5)


def drifting(machine):
    """Warms up and cools down over seconds."""
    machine.state += machine.rng.normal(scale=0.02) - 0.001 * machine.state
    return np.exp(machine.state) * machine.rng.lognormal(sigma=0.02)


def disturbed(machine):
    """Has a neighbour that takes half of the machine for a while, at any time."""
    switches = machine.rng.random() < (0.05 if machine.state else 0.01)
    machine.state = float(switches != bool(machine.state))
    return (2.0 if machine.state else 1.0) * machine.rng.lognormal(sigma=0.05)


def quiet(machine):
    return machine.rng.lognormal(sigma=0.002) + (machine.rng.random() < 0.01) * 5


def ratios(compare_by, scatter, factor, **how):
    found = []
    for seed in range(RUNS):
        machine = Machine(seed, scatter)
        compare_by(lambda machine=machine: machine.now)
        programs = {"one": machine.program(), "other": machine.program(factor)}
        found.append(compare(programs, device="cpu", **how)["other"].ratio)
    return found


@pytest.mark.parametrize("rounds", [7, 11, 20])
@pytest.mark.parametrize("scatter", [independent, drifting, disturbed, quiet])
def test_a_program_is_seldom_said_to_be_faster_than_itself(compare_by, scatter, rounds):
    found = ratios(compare_by, scatter, 1.0, repeat=rounds)
    assert sum(r.verdict in ("faster", "slower") for r in found) <= FALSE
    assert all(r.low <= r.middle <= r.high for r in found)
    if scatter is independent:
        assert np.mean([not r.low <= 1 <= r.high for r in found]) < 0.08


@pytest.mark.parametrize(
    ("scatter", "factor"), [(drifting, 1.2), (disturbed, 1.4), (quiet, 1.2)]
)
def test_a_slower_program_is_found_out(compare_by, scatter, factor):
    found = [r.verdict for r in ratios(compare_by, scatter, factor)]
    assert found.count("slower") > 0.8 * RUNS
    assert "faster" not in found
    assert ratios(compare_by, quiet, 1.01)[0].verdict == "same"
