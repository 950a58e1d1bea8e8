"""Laws of spares: results against a model of those that are alive."""

import gc

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule
from spare_results import CONTAINERS, VIEWS, add, subtract

from xdev import memory
from xdev.errors import InUseError, UseAfterFreeError
from xdev.memory.spares import KEPT

SHAPES = [(20_000,), (100, 200), (200, 100), (17_000,), (1, 20_000, 1)]
DTYPES = ["f4", "f8"]


def stats():
    return memory.pool("cpu", "host").stats()


class Results(RuleBasedStateMachine):
    """The results that are alive, and the number that each is full of."""

    live = Bundle("live")

    def __init__(self):
        super().__init__()
        gc.collect()
        for f in (add, subtract):
            for dtype in DTYPES:
                x = np.ones(2, dtype)
                f(x, x), f(x, x)  # from now on machine code is called
        self.start = stats()
        self.calls = self.made = 0
        self.results = {}  # number: result, and what else uses its memory
        self.sizes = {}
        self.containers = {}  # number: what has the result in it

    @rule(
        target=live,
        f=st.sampled_from([add, subtract]),
        shape=st.sampled_from(SHAPES),
        dtype=st.sampled_from(DTYPES),
    )
    def call(self, f, shape, dtype):
        self.made += 1
        self.calls += 1
        x = np.full(shape, 2 * self.made, dtype)
        y = np.full(shape, self.made, dtype)
        result = f(x, -y if f is add else y)
        assert (result.shape, result.dtype) == (shape, dtype)
        assert (result.base.shape, result.base.dtype) == (shape, dtype)
        self.results[self.made] = result, []
        self.sizes[self.made] = result.base.base.chunk.nbytes
        return self.made

    @rule(
        shape=st.sampled_from(SHAPES),
        dtype=st.sampled_from(DTYPES),
        times=st.integers(1, 6),
    )
    def loop(self, shape, dtype, times):
        z = x = np.zeros(shape, dtype)
        for _ in range(times):
            z = add(z, x)
        assert not z.any()
        self.calls += times

    @rule(number=live, view=st.sampled_from(VIEWS))
    def view(self, number, view):
        result, views = self.results.get(number, (None, None))
        if result is not None:
            views.append(view(result))

    @rule(number=live, contain=st.sampled_from(CONTAINERS))
    def contain(self, number, contain):
        if number in self.results:
            self.containers[number] = contain(self.results[number][0])

    @rule(number=consumes(live))
    def drop_all(self, number):
        self.results.pop(number, None)
        self.containers.pop(number, None)

    @rule(number=live)
    def drop_the_result_but_no_view(self, number):
        if number in self.results:
            _, views = self.results[number]
            self.results[number] = None, views
            self.containers.pop(number, None)

    @rule(number=consumes(live))
    def free(self, number):
        result, views = self.results.pop(number, (None, []))
        container = self.containers.pop(number, None)
        if result is None:
            return
        if views:
            with pytest.raises(InUseError):
                memory.free(result)
            assert (result == number).all()
        else:
            memory.free(result)
            with pytest.raises(UseAfterFreeError):
                memory.free(result)
        del container

    @rule(nbytes=st.integers(1, 3 << 20))
    def take_other_memory(self, nbytes):
        memory.host_array((nbytes,), np.dtype("u1"))[:] = 255
        self.calls += nbytes >= 64 << 10

    @invariant()
    def values_are_what_they_were(self):
        for number, (result, views) in self.results.items():
            assert result is None or (result == number).all()
            for view in views:
                array = np.asarray(view)
                if array.dtype != "u1":
                    assert (array == number).all()

    @rule()
    def count(self):
        """Look, which no invariant does: then nothing would be kept."""
        alive = [n for n, (x, views) in self.results.items() if x is not None or views]
        now = stats()
        assert now.allocated - self.start.allocated == sum(map(self.sizes.get, alive))
        assert now.acquired - self.start.acquired == self.calls
        assert now.live - self.start.live == len(alive)
        assert not KEPT

    def teardown(self):
        self.count()
        self.results.clear()
        self.containers.clear()
        self.count()


TestResults = Results.TestCase
