"""A kernel's points shared by threads on the CPU: each once, few long ones too."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest

import xdev
from xdev import _config
from xdev.compile import threads


@pytest.fixture(autouse=True)
def shared(monkeypatch):
    """Four threads; how many each call was shared among."""
    counts = []
    share = threads.team().share

    def noted(function, context, shares):
        counts.append(shares[3])
        return share(function, context, shares)

    monkeypatch.setattr(_config, "num_threads", lambda: 4)
    team = SimpleNamespace(share=noted)
    monkeypatch.setattr(threads, "team", lambda: team)
    return counts


@xdev.kernel
def count(i, j, out):
    out[i, j] += 1


@xdev.kernel
def total(i, n, out):
    value = 1.0
    for k in range(n):
        value = value * 0.5 + k % 3
    out[i] = value


@pytest.mark.parametrize("telling", [0.0, 3e-6, 1e9])
@pytest.mark.parametrize(
    "shape", [(0, 5), (1, 1), (3, 7), (40, 41), (257, 300), (2, 9000), (9000, 2)]
)
def test_every_point_is_computed_once(monkeypatch, telling, shape):
    monkeypatch.setattr(threads, "LONG", 1e-9)
    monkeypatch.setattr(threads, "PIECE", 1e-9)
    monkeypatch.setattr(threads, "TELLING", telling)
    out = np.zeros(shape, np.int64)

    for _ in range(5):
        count[shape](out)

    assert (out == 5).all()


def test_few_points_that_take_long_are_shared(shared):
    out = np.zeros(12)
    total[12](200_000, out)

    assert max(shared) == 4
    assert len(set(out.tolist())) == 1
    assert out[0] > 0


def test_short_calls_are_the_callers_alone(shared):
    out = np.zeros((1, 1), np.int64)
    count[1, 1](out)

    assert not shared


def test_a_call_of_no_points_tells_nothing_of_the_next(monkeypatch, shared):
    clock = itertools.count()  # the real one may tell of other programs
    monkeypatch.setattr(threads, "perf_counter", lambda: 1e-9 * next(clock))
    anew = xdev.kernel(count.function)  # known calls are machine code, by C's clock
    out = np.zeros(64, np.int64)
    for n in (0, 64, 1, 64):
        anew[n, 1](out.reshape(64, 1))
    assert not shared
