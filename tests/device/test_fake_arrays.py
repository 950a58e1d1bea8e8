"""Fake arrays do what NumPy's and CuPy's both do, and refuse what CuPy's refuse."""

import copy
import operator

import numpy as np
import pytest
from running import pickled

import xdev
from xdev import memory
from xdev.testing import FakeArray

VALUES = np.array([[3.0, -1.0, 2.0], [0.5, 4.0, -2.5]])


def fake(values=VALUES, device="fake"):
    return xdev.to_device(np.asarray(values), device)


def host(x):
    if isinstance(x, FakeArray):
        return xdev.to_numpy(x)
    return tuple(map(host, x)) if isinstance(x, tuple) else x


WITHOUT_ARGUMENTS = (
    *("all", "any", "argmax", "argmin", "argsort", "conj", "conjugate", "copy"),
    *("cumprod", "cumsum", "diagonal", "flatten", "max", "mean", "min", "nonzero"),
    *("prod", "ravel", "round", "sort", "squeeze", "std", "sum", "tobytes", "tolist"),
    *("trace", "transpose", "var"),
)
CALLS = {name: operator.methodcaller(name) for name in WITHOUT_ARGUMENTS} | {
    "argpartition": lambda x: x.argpartition(1, axis=1)[:, 1],
    "astype": lambda x: x.astype(np.float32),
    "clip": lambda x: x.clip(0, 2),
    "compress": lambda x: x.compress([True, False], axis=0),
    "dot": lambda x: x.dot(x.T),
    "fill": lambda x: x.fill(7.0),
    "item": lambda x: x[1, 1].item(),
    "partition": lambda x: x.partition(1, axis=1),
    "put": lambda x: x.put([0, 3], [9.0, 8.0]),
    "repeat": lambda x: x.repeat(2, axis=1),
    "reshape": lambda x: x.reshape(3, -1),
    "searchsorted": lambda x: x[0].cumsum().searchsorted(x[1]),
    "swapaxes": lambda x: x.swapaxes(0, 1),
    "take": lambda x: x.take([0, 2], axis=1),
    "view": lambda x: x.view(np.int64),
}
OPERATIONS = {
    "unary": lambda x: (-x, +x, abs(x), ~(x > 0)),
    "axes": lambda x: (x.sum(axis=(0, 1)), x.mean(axis=0, keepdims=True), x.min(1)),
    "numbers": lambda x: (x + 1, 2 - x, 3 * x, 1 / x, x**2, 2.0**x, x // 2, 7 % x),
    "host scalars": lambda x: (x * np.float64(2), np.float64(2) * x, np.float64(1) < x),
    "tuples and products": lambda x: (divmod(x, 2), x @ x.T),
    "logic": lambda x: ((x > 0) & (x < 3), (x > 0) | (x == 2), (x > 0) ^ (x != 2)),
    "shifts": lambda x: (x.astype(int) << 1, x.astype(int) >> 1, 1 << x.astype(int)),
    "comparisons": lambda x: (x >= x[::-1], x <= 2, x > 2),
    "python": lambda x: (len(x), float(x[0, 0]), int(x[1, 1]), bool(x[0, 1] < 0)),
    "complex": lambda x: complex(x[0, 0] + 1j),
    "rows": lambda x: tuple(row.sum() for row in x),
    "in": lambda x: 2.0 in x[0],
    "format": lambda x: f"{x[0, 0]:.3f}",
    "text": str,
    "integers": lambda x: (x[1], x[-1, 2], x[1, ...], x[:, None, 1]),
    "slices": lambda x: (x[::-1, 1:], x[..., ::2]),
    "slices to arrays": lambda x: (x[: (x[0] > 2).sum()], x[:, (x > 9).sum() :: 2]),
    "mask": lambda x: (x[x > 0], x[:, (x[0] > 0)]),
    "index arrays": lambda x: (x[x[0].argsort()[:2] % 2], x[:, [2, 0]]),
}


def augmented(x):
    y = x
    y += 1
    y *= 2
    y -= x * 0.5
    y /= 3
    return y is x, x


def written(x):
    x[0, 1] = 5
    x[1] = x[0]
    x[:, ::2] *= 2
    x[x > 6] = -1.0
    x[:, x[0].argsort()[:1]] = 0
    x[1, (x > 99).sum() : (x > 99).sum() + 1] = 7
    return x


OPERATIONS |= {"augmented": augmented, "written": written}


@pytest.mark.parametrize("name", [*CALLS, *OPERATIONS])
def test_a_fake_array_does_what_numpys_does(name):
    work = (CALLS | OPERATIONS)[name]
    plain, x = VALUES.copy(), fake()

    expected, result = work(plain), host(work(x))

    np.testing.assert_equal(result, expected)
    np.testing.assert_equal(host(x), plain)  # as changed in place, or not


ATTRIBUTES = [name for name in dir(FakeArray) if name[0] != "_" and name not in CALLS]


def test_every_method_has_a_case():
    assert not any(callable(getattr(FakeArray, name)) for name in ATTRIBUTES)


@pytest.mark.parametrize("name", sorted({*ATTRIBUTES} - {"device"}))
def test_attributes_are_numpys(name):
    expected, found = getattr(VALUES, name), host(getattr(fake(), name))

    np.testing.assert_equal(str(found), str(expected))


def test_copies_and_pickles_are_on_the_device():
    x = fake(device="fake:1")

    for twin in (copy.copy(x), copy.deepcopy(x), pickled(x)):
        twin[0, 0] = 9
        assert twin.device == "fake:1"
    np.testing.assert_array_equal(host(x), VALUES)


def test_views_share_memory_with_what_they_view():
    x = fake()

    x.T[0, 0] = 9
    x[1][...] = 8
    xdev.reshape(x, (-1,))[1] = 7

    np.testing.assert_array_equal(host(x), [[9, 7, 2], [8, 8, 8]])


def test_freed_arrays_are_refused():
    x = fake()
    memory.free(x)
    uses = (xdev.sum, xdev.to_numpy, memory.free, np.asarray, lambda x: x + 1, len)
    for use in (*uses, float, lambda x: x[0], lambda x: fake() + x, np.from_dlpack):
        with pytest.raises(xdev.UseAfterFreeError):
            use(x)
    assert "freed" in repr(x)


def test_xdev_is_the_namespace():
    assert fake().__array_namespace__(api_version="2025.12") is xdev
    with pytest.raises(ValueError, match="use 2025"):
        fake().__array_namespace__(api_version="1999.01")


def test_the_library_has_what_numpy_and_cupy_share():
    xp = xdev.namespace(fake())

    counts, edges = xp.histogram(fake(), bins=2)
    assert host(counts).tolist() == np.histogram(VALUES, bins=2)[0].tolist()
    assert edges.device == "fake:0"
    assert xp.float32 is np.float32
    assert host(xp.linalg.norm(fake())) == np.linalg.norm(VALUES)
    assert type(xp.asarray(VALUES)) is xp.ndarray is FakeArray
    with pytest.raises(xdev.DeviceMismatchError):
        xp.histogram(VALUES)
    for absent in ("nditer", "matrix", "random", "_core"):
        with pytest.raises(AttributeError):
            getattr(xp, absent)
    with pytest.raises(AttributeError):
        xp.linalg.multi_dot  # noqa: B018 - the look-up is the test


# What is left out, though NumPy's and CuPy's arrays have it.
LEFT_OUT = {
    "choose",  # CuPy's takes the choices as one array
    *("base", "data", "flat"),  # of three kinds: an object, a pointer, an iterator
    *("byteswap", "dump", "dumps", "tofile"),  # by files and bytes
}


def public(names):
    return {name for name in names if not name.startswith("_")}


def test_it_has_no_more_than_cupys_arrays():
    cupy = pytest.importorskip("cupy")
    shared = public(dir(cupy.ndarray)) & public(dir(np.ndarray))

    assert public(dir(FakeArray)) == shared - LEFT_OUT
    own = {name for name in vars(FakeArray) if name.startswith("__")}
    known = {"__slots__", "__weakref__", "__annotations__", "__final__"}
    known |= {"__firstlineno__", "__static_attributes__"}  # of Python 3.13
    known |= set(dir(cupy.ndarray))
    assert own - known == {"__array_namespace__"}


def test_its_library_has_no_more_than_cupy():
    cupy = pytest.importorskip("cupy")

    def missing(ours, theirs, room=""):
        names = public(dir(ours)) - public(dir(theirs))
        return {f"{room}{name}" for name in names}

    absent = missing(np, cupy) | missing(np.linalg, cupy.linalg, "linalg.")
    absent |= missing(np.fft, cupy.fft, "fft.")
    # Widths of the platform, which NumPy names after their bits.
    absent -= {"float96", "float128", "complex192", "complex256"}
    library = xdev.namespace(fake())
    for name in absent:
        with pytest.raises(AttributeError):
            operator.attrgetter(name)(library)


@pytest.mark.filterwarnings("ignore:Setting the shape:DeprecationWarning")
def test_what_numpys_and_cupys_arrays_let_one_set():
    x = fake()
    transposed = x.T

    x.shape = 6
    assert x.shape == (6,)
    x.shape = (-1, 2)
    assert host(x).tolist() == VALUES.reshape(3, 2).tolist()
    with pytest.raises(AttributeError, match="Incompatible shape"):
        transposed.shape = 6
    z = fake(VALUES + 1j)
    z.real, z.imag = 2, fake()
    np.testing.assert_array_equal(host(z), 2 + VALUES * 1j)
    with pytest.raises(xdev.DeviceMismatchError):
        z.real = VALUES
    with pytest.raises(AttributeError):
        x.dtype = np.int64


def test_results_are_arrays_on_the_device():
    x = fake(device="fake:1")

    for result in (x + 1, x[0, 0], x.sum(), x.T, x > 0, *x, *divmod(x, 2), x.real):
        assert type(result) is FakeArray
        assert result.device == xdev.device_of(result) == "fake:1"
    assert type(x.tolist()) is list
    assert type(x[0, 0].item()) is float


# -- what fails on CUDA fails here --------------------------------------------------


REFUSED = {
    "asarray": np.asarray,
    "array": lambda x: np.array([x, x]),
    "ufunc": lambda x: np.add(x, x),
    "function": np.sum,
    "concatenate": lambda x: np.concatenate([x, x]),
    "beside a host array": lambda x: x + VALUES,
    "beside a host array, turned": lambda x: VALUES + x,
    "compared with a host array": lambda x: operator.lt(VALUES, x),
    "matmul": lambda x: VALUES.T @ x,
    "beside a list": lambda x: operator.add(x, [1.0, 2.0, 3.0]),
    "into a host array": lambda x: operator.setitem(VALUES.copy(), 0, x[0]),
    "in place of a host array": lambda x: operator.iadd(VALUES.copy(), x),
    "from a host array": lambda x: operator.setitem(x, 0, VALUES[0]),
    "with a host mask": lambda x: x[VALUES > 0],
    "with host indices": lambda x: x[np.array([0])],
    "with indices of another device": lambda x: x[fake([0], "fake:1")],
    "host array with fake indices": lambda x: VALUES[x.argmax(axis=1)],
    "out on the host": lambda x: xdev.add(x, x, out=VALUES.copy()),
    "out on another device": lambda x: xdev.add(x, x, out=fake(VALUES, "fake:1")),
    "method with a host array": lambda x: x.dot(VALUES.T),
    "method with a host out": lambda x: x.sum(axis=0, out=np.zeros(3)),
    "beside another device": lambda x: x + fake(VALUES, "fake:1"),
    "facade with a host array": lambda x: xdev.add(x, VALUES),
    "an index of the host": lambda x: [1, 2, 3][x.astype(int)[0, 0]],
    "a range": lambda x: range(x.astype(int)[0, 0]),
    "a shape": lambda x: xdev.zeros(x.astype(int)[0, 0]),
    "a hash": hash,
    "memoryview": memoryview,
    "iteration of a number": lambda x: list(x.sum()),
    "float of several": float,
    "parameters of NumPy's methods": lambda x: x.sum(where=x > 0),
    "places of NumPy's methods": lambda x: x.item(0),
    "text": lambda x: xdev.asarray(["a"], device=x.device),
    "long double": lambda x: x.astype(np.longdouble),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_fails_on_cuda_is_refused(name):
    x = fake()

    with pytest.raises(TypeError):
        REFUSED[name](x)

    np.testing.assert_array_equal(xdev.to_numpy(x), VALUES)


@pytest.mark.parametrize(
    "call",
    [
        *(REFUSED[name] for name in ("asarray", "array", "function", "concatenate")),
        *(np.sin, lambda x: np.hypot(x, x), np.add.reduce, np.linalg.norm),
    ],
)
def test_the_refusal_names_the_explicit_copy(call):
    with pytest.raises(TypeError, match=r"fake:0.*xdev\.to_numpy\(x\)"):
        call(fake())


def test_the_refusal_of_two_devices_names_both_moves():
    moves = r"xdev\.to_device\(y, 'fake:0'\) or xdev\.to_device\(x, 'fake:1'\)"
    with pytest.raises(xdev.DeviceMismatchError, match=rf"y .*:1, x .*:0; .*{moves}"):
        fake() < fake(device="fake:1")  # noqa: B015 - it is refused


def test_dlpack_leaves_the_device_only_when_told_where_to():
    x = fake()

    with pytest.raises(BufferError, match="to_numpy"):
        np.from_dlpack(x)
    copied = np.from_dlpack(x, device="cpu")
    copied[...] = 0

    np.testing.assert_array_equal(xdev.to_numpy(x), VALUES)
