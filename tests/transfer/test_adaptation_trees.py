"""Any tree, against a walk that is written out here."""

import copy
import dataclasses
import itertools

import numpy as np
from hypothesis import HealthCheck, given, settings, strategies as st

import xdev


@dataclasses.dataclass(frozen=True, slots=True)
class Layer:
    weights: object


class Diagonal:
    def __init__(self, diag):
        self.diag = diag


@xdev.adapt.register(Diagonal)
def _diagonal(move, x):
    return Diagonal(move(x.diag))


leaves = st.sampled_from([None, 1, "text", "array", "shared"])
trees = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
        inner.map(Layer),
        inner.map(Diagonal),
    ),
    max_leaves=20,
)


def grown(plan, array):
    """Make a tree of a plan; ``array(name)`` makes its arrays."""
    if plan in ("array", "shared"):
        return array(plan)
    if isinstance(plan, list | tuple):
        return type(plan)(grown(part, array) for part in plan)
    if isinstance(plan, dict):
        return {key: grown(part, array) for key, part in plan.items()}
    if isinstance(plan, Layer):
        return Layer(grown(plan.weights, array))
    return Diagonal(grown(plan.diag, array)) if isinstance(plan, Diagonal) else plan


def flat(tree):
    """Return the leaves of a tree, and the types on the way to each."""
    kind = type(tree)
    if isinstance(tree, list | tuple):
        parts = list(tree)
    elif isinstance(tree, dict):
        parts = [part for _, part in sorted(tree.items())]
    elif isinstance(tree, Layer | Diagonal):
        parts = [tree.weights if isinstance(tree, Layer) else tree.diag]
    else:
        return [((), tree)]
    inner = itertools.chain.from_iterable(map(flat, parts))
    return [((kind,), None)] + [((kind, *way), leaf) for way, leaf in inner]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(plan=trees)
def test_any_tree_keeps_its_form_and_its_values(device, plan):
    numbers = itertools.count()
    shared = np.full(3, -1.0, "float32")

    def array(name):
        return shared if name == "shared" else np.full(2, next(numbers), "int32")

    tree = grown(plan, array)
    before = copy.deepcopy(tree)

    there = xdev.adapt(device, tree)

    moved, kept = flat(there), flat(tree)
    assert [way for way, _ in moved] == [way for way, _ in kept]
    aliases = {}
    for (_, new), (_, old), (_, was) in zip(moved, kept, flat(before), strict=True):
        if isinstance(old, np.ndarray):
            assert xdev.device_of(new) == device
            np.testing.assert_array_equal(xdev.to_numpy(new), old)
            np.testing.assert_array_equal(old, was)
            assert aliases.setdefault(id(old), new) is new
        else:
            assert new is old
    if not aliases or device == "cpu":
        assert there is tree
