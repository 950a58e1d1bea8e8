"""A map in the order of its keys, against a sorted list and a dict."""

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from xdev.memory.blocks import Ordered

keys = st.integers(min_value=0, max_value=60)


class OrderedLaws(RuleBasedStateMachine):
    def __init__(self):
        super().__init__()
        self.map, self.model = Ordered(), {}

    @rule(key=keys, value=st.integers())
    def add(self, key, value):
        self.map.add(key, value)
        self.model[key] = value

    @rule(key=keys)
    def pop(self, key):
        if key in self.model:
            assert self.map.pop(key) == self.model.pop(key)
        else:
            with pytest.raises(KeyError):
                self.map.pop(key)

    @rule(key=st.integers(min_value=-1, max_value=61))
    def look(self, key):
        before = [k for k in self.model if k <= key]
        after = [k for k in self.model if k >= key]
        assert self.map.floor(key) == (self.model[max(before)] if before else None)
        assert self.map.ceiling(key) == (self.model[min(after)] if after else None)

    @invariant()
    def it_goes_through_the_values_in_order_of_the_keys(self):
        values = [self.model[key] for key in sorted(self.model)]
        assert list(self.map) == values
        assert list(reversed(self.map)) == values[::-1]
        assert len(self.map) == len(values)


TestOrdered = OrderedLaws.TestCase
