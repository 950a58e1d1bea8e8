"""CuPy's operators by the engine: what CuPy's own give, over types and layouts."""

import itertools
import operator

import numpy as np
import pytest

import xdev
from xdev import memory

cupy = pytest.importorskip("cupy")
KINDS = [*"?bBIlefdD"]
ARITHMETIC = [
    *("add", "sub", "mul", "truediv", "floordiv", "mod", "pow"),
    *("and_", "or_", "xor", "lshift", "rshift"),
]
COMPARISONS = ["eq", "ne", "lt", "le", "gt", "ge"]
METHODS = ("all", "any", "max", "mean", "min", "std", "sum", "var")
#: Of each type with itself, and with some others: a pair takes two compilations.
PAIRS = [
    (one, other)
    for (i, one), (k, other) in itertools.product(enumerate(KINDS), enumerate(KINDS))
    if (i - k) % 4 == 0 or (one, other) in (("b", "B"), ("I", "l"), ("l", "f"))
]
NEAR = {"e": 2e-3, "f": 1e-6, "F": 2e-6, "d": 1e-13, "D": 1e-13}


@pytest.fixture
def bridge():
    before = memory.bridges.installed()
    with memory.bridges.using("cupy-operators"):
        yield
    assert memory.bridges.installed() == before


@pytest.fixture
def plain():
    def call(function, *args):
        memory.bridges.uninstall("cupy-operators")
        try:
            return function(*args)
        except Exception as error:  # noqa: BLE001 - what CuPy refuses is refused
            return type(error)
        finally:
            memory.bridges.install("cupy-operators")

    return call


def called(function, *args):
    try:
        return function(*args)
    except Exception as error:  # noqa: BLE001 - compared with what CuPy raises
        return type(error)


def assert_same(found, wanted, where):
    if isinstance(wanted, type) or isinstance(found, type):
        assert found is wanted, where
        return
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape), where
    assert type(found) is type(wanted), where
    near = NEAR.get(wanted.dtype.char, 0)
    np.testing.assert_allclose(found.get(), wanted.get(), near, near, err_msg=where)


def compare(plain, function, args, where):
    """Compare with CuPy's own, twice: the general way, and the plan."""
    wanted = plain(function, *args)
    for _ in range(2):
        assert_same(called(function, *args), wanted, where)


def sample(kind, shape=(3, 4), seed=0):
    """Return small numbers of which quotients and powers are exact or harmless."""
    numbers = np.random.default_rng(seed).integers(1, 5, shape)
    return cupy.asarray(numbers.astype(kind) if kind != "?" else numbers > 2)


def test_install_and_uninstall_restore_the_class():
    before = dict(vars(cupy.ndarray))
    own = cupy.ndarray.__add__
    memory.bridges.install("cupy-operators")
    try:
        assert cupy.ndarray.__add__ is not own
        assert "cupy-operators" in memory.bridges.installed()
        assert (
            cupy.ndarray.sum.__doc__ == before.get("sum", own.__objclass__.sum).__doc__
        )
    finally:
        memory.bridges.uninstall("cupy-operators")
    assert dict(vars(cupy.ndarray)) == before
    assert cupy.ndarray.__add__ == own


def test_what_somebody_set_since_stays():
    memory.bridges.install("cupy-operators")
    try:
        cupy.ndarray.sum = theirs = operator.itemgetter(0)
        memory.bridges.uninstall("cupy-operators")
        assert cupy.ndarray.sum is theirs
        assert "__add__" not in vars(cupy.ndarray)
    finally:
        memory.bridges.uninstall("cupy-operators")
        if "sum" in vars(cupy.ndarray):
            del cupy.ndarray.sum


@pytest.mark.cuda
@pytest.mark.usefixtures("cuda", "bridge")
class TestOnCuda:
    @pytest.mark.parametrize("name", [*ARITHMETIC, *COMPARISONS])
    def test_two_operands(self, plain, name):
        numbers = (True, 2, 3.0, 2j, np.float32(2), None)
        operands = [(sample(one), sample(other, seed=1)) for one, other in PAIRS]
        for kind, number in itertools.product("?Bif", numbers):
            operands += [(sample(kind), number), (number, sample(kind))]
        for args in operands:
            kinds = " and ".join(str(getattr(x, "dtype", x)) for x in args)
            compare(plain, getattr(operator, name), args, f"{name} of {kinds}")

    @pytest.mark.parametrize("name", ARITHMETIC)
    def test_in_place(self, plain, name):
        function = getattr(operator, f"i{name.rstrip('_')}")
        for one, other in PAIRS[::2]:
            wanted = plain(function, sample(one), sample(other, seed=1))
            for _ in range(2):
                x, where = sample(one), f"{name} of {one} and {other}"
                found = called(function, x, sample(other, seed=1))
                assert found is x or isinstance(found, type), where
                assert_same(found, wanted, where)

    @pytest.mark.parametrize("name", ["neg", "pos", "abs", "invert"])
    def test_one_operand(self, plain, name):
        for kind in KINDS:
            compare(plain, getattr(operator, name), [sample(kind)], f"{name} of {kind}")

    @pytest.mark.parametrize("name", METHODS)
    def test_methods(self, plain, name):
        several = {"axis": (0, 2), "keepdims": True}
        for kind, options in itertools.product(
            KINDS, ({}, several, {"axis": 3}, {"axis": -1, "out": None})
        ):
            call = operator.methodcaller(name, **options)
            where = f"{name} of {kind} with {options}"
            compare(plain, call, [sample(kind, (3, 4, 5))], where)

    def test_layouts_and_shapes(self, plain):
        u = cupy.asarray(np.random.default_rng(2).random((20, 30), "f4"))
        cases = [
            (u[1:-1, 2:], u[1:-1, :-2]),
            (u.T, u.T[:, :1]),
            (u[::-2], u[0]),
            (u[:, :0], u[:, :0]),
            (u, u[:3, :4]),
            (u[0, 0], u),
        ]
        for x, y in cases:
            for function in (operator.add, operator.mul, operator.lt):
                compare(plain, function, (x, y), f"{x.shape} {y.shape}")
        stencil = u[1:-1, 2:] - 2 * u[1:-1, 1:-1] + u[1:-1, :-2]
        there = u.get()
        near = there[1:-1, 2:] - 2 * there[1:-1, 1:-1] + there[1:-1, :-2]
        np.testing.assert_array_equal(stencil.get(), near)

    def test_what_is_not_served_is_cupys(self, plain):
        class Own(cupy.ndarray):
            pass

        x = sample("f")
        one = x.view(Own)
        assert type(one + x) is type(plain(operator.add, one, x))
        for other in (np.ones(4), [1.0], None):
            compare(plain, operator.add, (x, other), f"{other!r}")

        class Theirs:
            __array_ufunc__ = None

            def __radd__(self, other):
                return "theirs"

        assert x + Theirs() == "theirs"
        assert float(xdev.mean(x)) == float(x.mean())
