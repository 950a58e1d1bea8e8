"""Pickles of ufuncs and kernels: by name in a program, by value by tools that do so."""

import copy
import importlib
import inspect
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


@xdev.kernel(fastmath=True)
def scaled(i, factor, out):
    """Scale in place."""
    out[i] *= factor


@xdev.guvectorize("(n)->()")
def total(x, out):
    """Return the sum."""
    out[0] = 0
    for value in x:
        out[0] += value


DECORATED = [add, scaled, total]


def plain(x):
    return x * 2


doubled = xdev.vectorize(["float32(float32)"], target="parallel")(plain)


def loaded(data):
    return pickle.loads(data)  # noqa: S301 - our own


@pytest.mark.parametrize("made", DECORATED, ids=repr)
def test_a_decorated_function_is_itself_again(made):
    name = made.__name__
    for _ in range(2):
        assert loaded(pickle.dumps(made)) is made
        assert copy.deepcopy(made) is made
        assert made.__qualname__ == name


def test_a_function_under_another_name_is_made_again_with_its_options():
    again = loaded(pickle.dumps(doubled))

    assert again.__wrapped__ is plain
    assert (again.types, again.target) == (["f->f"], "parallel")
    assert again(np.float32(2)) == 4


def test_lambdas_and_closures_are_refused_by_pickle_alone():
    factor, out = 3.0, np.zeros(2)

    @xdev.kernel
    def times(i, x, out):
        out[i] = x[i] * factor

    ufunc = xdev.vectorize(lambda x: x * factor)
    for made, name in ((ufunc, "lambda"), (times, "times")):
        with pytest.raises((pickle.PicklingError, AttributeError), match=name):
            pickle.dumps(made)
    assert loaded(cloudpickle.dumps(ufunc))(np.ones(2)).tolist() == [3, 3]
    loaded(cloudpickle.dumps(times))[2](np.ones(2), out)
    assert out.tolist() == [3, 3]


MAIN = """
import pickle, sys
import cloudpickle, numpy as np, xdev

@xdev.vectorize(identity=0)
def add(x, y):
    return x + y

@xdev.kernel
def scaled(i, factor, out):
    out[i] *= factor

@xdev.guvectorize("(n)->()")
def total(x, out):
    out[0] = x[0] + x[1]

add(1.0, 2.0)
for made in (add, scaled, total):
    assert pickle.loads(pickle.dumps(made)) is made
sys.stdout.buffer.write(cloudpickle.dumps((add, add, scaled, total)))
"""


def test_functions_of_main_go_to_other_programs_by_value():
    ran = subprocess.run([sys.executable, "-c", MAIN], capture_output=True, check=True)

    one, same, kernel, gufunc = loaded(ran.stdout)

    assert one is same
    assert one(np.ones(2, "f"), 2).tolist() == [3, 3]
    assert (one.identity, one.__name__, one.__qualname__) == (0, "add", "add")
    out = np.ones(2)
    kernel[2](3.0, out)
    assert gufunc(out) == 6
    assert (kernel.__qualname__, gufunc.__qualname__) == ("scaled", "total")


ELSEWHERE = """
import xdev, math
import numpy as np

if True:
    def make(limit):
        @xdev.vectorize
        def wrapped(x, y):
            if x < y:  # of two lines
                return (
                    x + y) // 2
            return np.maximum(x, y) * 3 - limit
        return wrapped

twice = xdev.vectorize(lambda x: inner(x + x) // 2)
inner = xdev.vectorize(lambda x: x * 3)

@xdev.kernel
def scaled(i, x, out):
    out[i] = x[i] * 0.1 + 3
"""


def outcomes(wrapped, twice, scaled):
    x, y = np.array([250, 100, 200, 3], "B"), np.array([251, 200, 100, 1], "B")
    third = np.arange(4, dtype="f") / 3
    out = np.zeros_like(third)
    scaled[4](third, out)
    return [each.tolist() for each in (wrapped(x, y), twice(x), out)]


RECEIVER = f"""
import cloudpickle, pickle, sys
import numpy as np
{inspect.getsource(outcomes)}
made = pickle.loads(sys.stdin.buffer.read())
print([outcomes(*made), outcomes(*pickle.loads(cloudpickle.dumps(made)))])
"""


def test_sources_go_along_to_machines_without_the_file(tmp_path, monkeypatch):
    file, program = tmp_path / "elsewhere.py", tmp_path / "receiver.py"
    file.write_text(ELSEWHERE)
    program.write_text(RECEIVER)
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("elsewhere")
    cloudpickle.register_pickle_by_value(module)
    made = module.make(5), module.twice, module.scaled
    here, data = outcomes(*made), cloudpickle.dumps(made)
    cloudpickle.unregister_pickle_by_value(module)
    monkeypatch.delitem(sys.modules, "elsewhere")
    file.unlink()

    run = [sys.executable, str(program)]
    ran = subprocess.run(run, input=data, capture_output=True, check=True)

    assert here[:2] == [[122, 22, 83, 4], [110, 44, 88, 9]]
    assert ran.stdout.decode().strip() == repr([here, here])


SPAWNING = """
import multiprocessing
import numpy as np, xdev

@xdev.vectorize
def mean(x, y):
    return (x + y) // 2

def called(function):
    x = np.array([200, 100], "B")
    return function(x, x).tolist()

if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(called(mean), pool.map(called, [mean]))
"""


def test_functions_of_a_program_that_spawns_processes(printed, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(SPAWNING)
    assert printed(program) == "[72, 100] [[72, 100]]\n"
