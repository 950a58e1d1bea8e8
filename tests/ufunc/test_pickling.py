"""Pickles of ufuncs: by name within a program, by value where a tool does that."""

import copy
import pickle
import subprocess
import sys

import cloudpickle
import numpy as np
import pytest

import xdev


@xdev.vectorize(identity=0)
def add(x, y):
    """Return the sum."""
    return x + y


def plain(x):
    return x * 2


doubled = xdev.vectorize(["float32(float32)"], target="parallel")(plain)


def loaded(data):
    return pickle.loads(data)  # noqa: S301 - our own


@pytest.mark.parametrize("protocol", range(4, pickle.HIGHEST_PROTOCOL + 1))
def test_a_decorated_function_is_itself_again(protocol):
    assert loaded(pickle.dumps(add, protocol)) is add
    assert copy.deepcopy(add) is add
    assert add.__qualname__ == "add"


def test_a_function_under_another_name_is_made_again_with_its_options():
    again = loaded(pickle.dumps(doubled))

    assert again.scalar.function is plain
    assert again.types == ["f->f"]
    assert again.target == "parallel"
    assert again(np.float32(2)) == 4


def test_lambdas_and_closures_are_refused_by_pickle_alone():
    factor = 3.0
    f = xdev.vectorize(lambda x: x * factor)

    with pytest.raises((pickle.PicklingError, AttributeError), match="lambda"):
        pickle.dumps(f)
    assert loaded(cloudpickle.dumps(f))(2.0) == 6


MAIN = """
import pickle, sys
import cloudpickle, numpy as np, xdev

@xdev.vectorize(identity=0)
def add(x, y):
    return x + y

add(1.0, 2.0)
assert pickle.loads(pickle.dumps(add)) is add
sys.stdout.buffer.write(cloudpickle.dumps((add, add)))
"""


def test_functions_of_main_go_to_other_programs_by_value():
    ran = subprocess.run(
        [sys.executable, "-c", MAIN], capture_output=True, timeout=60, check=True
    )

    one, same = loaded(ran.stdout)

    assert one is same
    assert one(np.ones(2, "f"), 2).tolist() == [3, 3]
    assert (one.identity, one.__name__, one.__qualname__) == (0, "add", "add")
