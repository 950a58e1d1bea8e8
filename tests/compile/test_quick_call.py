"""Calls that compiled code hands to NumPy, and those that it leaves to Python."""

import os
import subprocess
import sys

import numpy as np
import pytest

from xdev.compile import quick_call, quick_call_code

# A finalizer that runs when most modules are empty: that of `os` goes late.
LATE = """
import os
import numpy as np
import xdev

class Late:
    def __init__(self, add, x):
        self.add, self.x, self.write, self.xdev = add, x, os.write, xdev
    def __del__(self):
        for _ in range(3):
            self.write(1, b"%d " % self.add(self.x, self.x)[-1])

add, x = xdev.vectorize(lambda x, y: x + y), np.arange(6.0)
for _ in range(3):
    add(x, x)
os.late = Late(add, x)
"""


class Doubtful(quick_call.Quick):
    """Tells of the calls that it gets."""

    def __call__(self, *args, out=None, **keywords):
        """Say what came."""
        return "python", args, out, keywords


def made(shape, dtype, size):
    assert size == np.prod(shape)
    MADE.append(np.empty(shape, dtype))
    return MADE[-1]


MADE = []
quick_call.install(Doubtful, made)
X, Y, O = np.arange(6.0), np.ones(6), np.zeros(6)
F4 = X.astype("f4")


@pytest.fixture
def f():
    f = Doubtful()
    dtypes = [np.dtype("d")]
    f.remember((X, Y), np.subtract, outputs=dtypes, limits=(100, 1000))
    f.remember((X, 1.0), np.subtract, outputs=dtypes, limits=(100, 1000))
    return f


def test_before_anything_is_known_python_is_called():
    f = Doubtful()

    assert f(X, 2, out=O, k=3) == ("python", (X, 2), O, {"k": 3})
    assert f() == ("python", (), None, {})
    f.forget()


def test_known_types_go_to_numpy(f):
    assert f(X, Y).tolist() == (X - 1).tolist()
    assert f(X, 2.5).tolist() == (X - 2.5).tolist()
    assert f(X, Y, out=O) is O
    assert f(X, Y, O) is O
    assert f(X[::2], Y[:3]).tolist() == [-1, 1, 3]
    assert f(X[:, None], Y).shape == (6, 6)
    assert type(f(X[0:1].reshape(()), 2.0)) is np.float64
    assert f(np.zeros((2, 0)), np.zeros((5, 1, 0))).shape == (5, 2, 0)


@pytest.mark.parametrize(
    "args",
    [
        (),
        (X,),
        (X, Y, O, O),
        (F4, Y),
        (X, F4),
        (X, 1),
        (X, True),
        (X, None),
        ("X", "Y"),
        (X, Y, [0.0]),
        (X, Y, None),
        (X.view(np.recarray), Y),
        (X.astype(">f8"), Y),
        (np.zeros(2000), np.zeros(2000)),
        (np.zeros((40, 1)), np.zeros(40)),  # not all in C order of one shape
        (np.zeros((20, 10))[:, ::2], 1.0),
        (np.zeros(1000), np.zeros(1000), np.zeros(1000)),
        (np.zeros(1), np.zeros(1), np.zeros(1000)),
    ],
)
def test_the_rest_goes_to_python(f, args):
    word, got, out, keywords = f(*args)

    assert word == "python"
    assert all(a is b for a, b in zip(got, args, strict=True))
    assert (out, keywords) == (None, {})


@pytest.mark.parametrize(
    "keywords",
    [
        {"where": True},
        {"out": O, "where": True},
        {"out": (O,)},
        {"out": None},
        {"o": 1},
    ],
)
def test_of_keywords_only_an_out_array_is_quick(f, keywords):
    word, args, out, others = f(X, Y, **keywords)

    assert word == "python"
    assert args == (X, Y)
    assert {"out": out, **others} == {"out": None, **keywords}


@pytest.mark.parametrize("n", [100, 999])
@pytest.mark.parametrize("y", [1.0, np.float64(1), "array"])
def test_larger_results_are_made_by_the_maker(f, n, y):
    f.remember((X, np.float64(1)), np.subtract, outputs=[X.dtype], limits=(100, 1000))
    x = np.arange(float(n)).reshape(n // 1, 1)
    before = len(MADE)

    result = f(x, np.ones_like(x) if y == "array" else y)

    assert result is MADE[-1]
    assert len(MADE) == before + 1
    assert sys.getrefcount(result) == 3  # the list's, this name's, the argument's
    np.testing.assert_array_equal(result, x - 1)


def test_what_the_maker_raises_is_raised():
    class Failing(Doubtful):
        def __call__(self, *_):
            return "python"

    def fails(shape, *_):
        raise MemoryError(shape)

    quick_call.install(Failing, fails)
    f = Failing()
    f.remember((X,), np.negative, outputs=[X.dtype], limits=(5, 1000))

    assert f(X[:4]).tolist() == [0, -1, -2, -3]
    with pytest.raises(MemoryError, match="6"):
        f(X)


def test_python_words_what_numpy_refuses_and_only_that(f):
    assert f(X, Y[:4])[0] == "python"
    assert f(X, Y, out=np.zeros(3))[0] == "python"
    with np.errstate(over="raise"), pytest.raises(FloatingPointError):
        f(np.full(3, -1e308), np.full(3, 1e308))


def test_several_outputs_have_no_single_out():
    f = Doubtful()
    f.remember((X,), np.modf, outputs=[X.dtype] * 2, limits=(100, 1000))

    assert f(np.asarray([1.5]))[1] == 1
    assert f(X, O)[0] == "python"
    assert f(X, out=O)[0] == "python"
    assert f(np.zeros(500))[0] == "python"


def test_a_type_is_remembered_once_and_the_last_word_counts(f):
    for ufunc in (np.add, np.multiply, np.subtract, np.add):
        f.remember((X, Y), ufunc, outputs=[X.dtype], limits=(100, 1000))

    assert f(X, Y).tolist() == (X + 1).tolist()
    assert int(f._quick[quick_call_code.ROWS]) == 2


def test_many_types_push_out_the_first():
    f = Doubtful()
    kinds = "bBhHiIlLqQefdFDg"
    arrays = [np.ones(2, k) for k in kinds]
    for x in (*arrays, *arrays[:3]):
        f.remember((x,), np.positive, outputs=[x.dtype], limits=(100, 1000))
    f.remember((1.5,), np.positive, outputs=[X.dtype], limits=(100, 1000))

    assert f(2.5) == 2.5
    known = [not isinstance(f(x), tuple) for x in arrays]
    assert known.count(True) == quick_call.MOST_ROWS - 1


def test_forgotten_types_are_pythons_again(f):
    f.forget()

    assert f(X, Y)[0] == "python"


def test_no_reference_is_lost_or_kept(f):
    x, y, out = np.ones(6), np.ones(6), np.ones(6)
    big = np.ones(500)
    before = [sys.getrefcount(o) for o in (x, y, out, big, f, np.subtract, X.dtype)]
    for _ in range(100):
        f(x, y)
        f(x, y, out=out)
        f(x, 1.0)
        f(big, big)
        MADE.clear()
        f(x, y, where=True)
        f(x, y[:4])
    after = [sys.getrefcount(o) for o in (x, y, out, big, f, np.subtract, X.dtype)]

    assert all(a - b < 5 for a, b in zip(after, before, strict=True))
    assert min(after) > 1


def test_a_finalizer_may_call_at_the_end_of_the_process():
    # Memory that is given back is overwritten at once.
    scrubbed = {"PYTHONMALLOC": "malloc", "MALLOC_PERTURB_": "170"}
    done = subprocess.run(
        [sys.executable, "-c", LATE],
        capture_output=True,
        env=os.environ | scrubbed,
        check=False,
    )

    assert (done.returncode, done.stdout) == (0, b"10 10 10 "), done.stderr.decode()
