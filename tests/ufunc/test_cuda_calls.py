"""Ufunc calls on a real GPU, against NumPy."""

import importlib
import itertools
import math
import threading

import numpy as np
import pytest

from xdev import _optional
from xdev.ufunc.cuda import CudaLoops
from xdev.ufunc.cuda_methods import CudaMethods
from xdev.ufunc.on_cuda import is_cuda
from xdev.ufunc.scalar import ScalarFunction

pytestmark = [
    pytest.mark.cuda,
    pytest.mark.usefixtures("cuda"),
    # numba-cuda's own import, under NumPy 2.5:
    pytest.mark.filterwarnings("ignore:The 'generic' unit:DeprecationWarning"),
]


@CudaLoops
@ScalarFunction
def add(x, y):
    return x + y


@CudaLoops
@ScalarFunction
def chain(a, x, y):
    return a * x + y * 3 - x * x


@CudaLoops
@ScalarFunction
def sine(x):
    return math.sin(x)


@CudaLoops
@ScalarFunction
def above(x, y):
    return x > y


@CudaLoops
@ScalarFunction
def divide(x, y):
    return x // y, x % y


@pytest.fixture(scope="module")
def cp():
    return _optional.cupy()


def sample(shape, char, seed=0):
    """Return random values that no sum or product of three overflows."""
    rng = np.random.default_rng(seed)
    dtype = np.dtype(char)
    if dtype.kind == "b":
        return rng.random(shape) < 0.5
    if dtype.kind == "c":
        return (rng.random(shape) - 0.5j * rng.random(shape)).astype(dtype)
    if dtype.kind == "f":
        return (rng.random(shape) * 4 - 2).astype(dtype)
    return rng.integers(0, 5, shape).astype(dtype)


SIZES = [0, 1, 3, 255, 4096, 100_003]
LAYOUTS = {
    "contiguous": lambda x: x,
    "misaligned": lambda x: x[1:],
    "misaligned by more": lambda x: x[3:],
    "skipped": lambda x: x[::2],
    "reversed": lambda x: x[::-1],
}


@pytest.mark.parametrize("char", "bhilBHILefdFD")
@pytest.mark.parametrize("layout", LAYOUTS)
def test_sums_of_every_dtype_and_layout_equal_numpy(cp, char, layout):
    view = LAYOUTS[layout]
    for size in SIZES:
        whole = sample(size, char), sample(size, char, 1)
        x, y = map(view, whole)
        dx, dy = (view(cp.asarray(each)) for each in whole)

        made = add((dx, dy))

        assert made.dtype == x.dtype
        np.testing.assert_array_equal(made.get(), x + y)
        out = view(cp.full(size, 77, x.dtype))
        assert add.fast(dx, dy, out) is out
        np.testing.assert_array_equal(out.get(), x + y)


@pytest.mark.parametrize(("a", "b"), list(itertools.product("?bIefD", repeat=2)))
def test_mixed_dtypes_promote_as_numpy_does(cp, a, b):
    if a == b == "?":
        pytest.skip("NumPy adds bools as 'or', Python as integers")
    x, y = sample((40, 50), a), sample((40, 50), b, 1)

    made = add((cp.asarray(x), cp.asarray(y)))

    assert made.dtype == (x + y).dtype
    np.testing.assert_array_equal(made.get(), x + y)


@pytest.mark.parametrize(
    "shapes",
    [((30, 1), (40,)), ((5, 1, 7), (6, 1)), ((), (8,)), ((1,), (4, 4)), ((2, 0), (1,))],
    ids=str,
)
@pytest.mark.parametrize("order", "CF")
def test_broadcasting_equals_numpy(cp, shapes, order):
    x, y = (np.asarray(sample(s, "f", i), order=order) for i, s in enumerate(shapes))

    made = add((cp.asarray(x), cp.asarray(y)))

    np.testing.assert_array_equal(made.get(), x + y)


@pytest.mark.parametrize("char", "befdD")
def test_operands_misaligned_apart(cp, char):
    whole = [sample(100_003, char, seed) for seed in range(3)]
    for starts in itertools.product((0, 1, 2, 5), repeat=3):
        x, y, _ = (v[s : s + 99_000] for v, s in zip(whole, starts, strict=True))
        dx, dy = (
            cp.asarray(v)[s : s + 99_000]
            for v, s in zip(whole[:2], starts[:2], strict=True)
        )
        memory = cp.asarray(whole[2])

        add.fast(dx, dy, memory[starts[2] : starts[2] + 99_000])

        expected = whole[2].copy()
        expected[starts[2] : starts[2] + 99_000] = x + y
        np.testing.assert_array_equal(memory.get(), expected)


ROWS = {
    "row": lambda x: x[0],
    "column": lambda x: x[:, :1],
    "inner": lambda x: x[:, 3:-2],
    "odd": lambda x: x[:, 1:],
    "every other column": lambda x: x[:, ::2],
    "transposed": lambda x: x.T,
    "backwards": lambda x: x[::-1, ::-1],
}


@pytest.mark.parametrize("char", "befD")
@pytest.mark.parametrize("name", ROWS)
def test_matrices_by_rows_twice(cp, char, name):
    x, y = sample((501, 501), char), ROWS[name](sample((501, 501), char, 1))
    dx, dy = cp.asarray(x), ROWS[name](cp.asarray(sample((501, 501), char, 1)))
    if name in {"inner", "odd", "every other column"}:
        x, dx = ROWS[name](x), ROWS[name](dx)
    for out in (
        cp.empty(x.shape, char),
        cp.empty((501, 600), char)[:, 3 : 3 + x.shape[1]],
    ):
        for _ in range(2):  # the second time by the fast way
            out[...] = 99
            assert add.fast(dx, dy, out) is out
            np.testing.assert_array_equal(out.get(), x + y)
    np.testing.assert_array_equal(add.fast(dx, dy, None).get(), x + y)


def test_what_is_learnt_of_one_layout_serves_no_other_of_its_size(cp):
    x, y = sample((64, 128), "f"), sample((64, 128), "f", 1)
    pairs = [(x, y), (x, y[0]), (x[:1], y), (x.ravel(), y.ravel()), (x, y[:1, :1])]
    for order in itertools.permutations(range(len(pairs)), 3):
        add._known.clear()
        for i in order * 2:
            a, b = pairs[i]
            out = cp.empty((a + b).shape, "f")
            add.fast(cp.asarray(a), cp.asarray(b), out)
            np.testing.assert_array_equal(out.get(), a + b)
            made = add.fast(cp.asarray(a), cp.asarray(b), None)
            np.testing.assert_array_equal(made.get(), a + b)


def test_transposed_and_sliced_matrices_equal_numpy(cp):
    x, y, z = (sample((64, 96), "f", i) for i in range(3))

    def views(a, b, c):
        return a[::2, 1:], b[:48:-1, 0], c[32:, ::-1][:, 1:].T.copy().T

    def wide(a, b, c):
        return [a, b[:, None].repeat(3, 1)[:1, :1], c]

    ours = wide(*views(*map(cp.asarray, (x, y, z))))
    theirs = wide(*views(x, y, z))
    a, b, c = theirs
    expected = a * b + c * np.float32(3) - b * b
    np.testing.assert_array_equal(chain(ours).get(), expected)


def test_a_chain_of_products_and_sums_rounds_as_numpy_does(cp):
    a, x, y = (sample(10_007, "f", i) for i in range(3))

    made = chain([cp.asarray(v) for v in (a, x, y)])

    np.testing.assert_array_equal(made.get(), a * x + y * np.float32(3) - x * x)


@pytest.mark.parametrize("number", [2, 0.1, np.float32(0.1), True], ids=repr)
@pytest.mark.parametrize("char", "lefdF")
def test_numbers_by_value_equal_numpy(cp, char, number):
    x = sample(1001, char)

    made = add((cp.asarray(x), number))

    assert made.dtype == (x + number).dtype
    np.testing.assert_array_equal(made.get(), x + number)


@pytest.mark.parametrize("char", "bhBHefdF?")
def test_numbers_of_every_dtype_reach_the_kernel(cp, char):
    x, number = sample((33, 7), char), sample(1, char, 3)[0]

    for view in (x, x[:, ::2]):
        if char == "F":
            made, expected = add((cp.asarray(view), number)), view + number
        else:
            made, expected = above((cp.asarray(view), number)), view > number
        np.testing.assert_array_equal(made.get(), expected)


def test_half_is_computed_in_float(cp):
    x, y = sample(3001, "e"), sample(3001, "e", 1)

    made = chain([cp.asarray(x), cp.asarray(y), cp.asarray(x)])

    single = [v.astype(np.float32) for v in (x, y, x)]
    expected = single[0] * single[1] + single[2] * 3 - single[1] * single[1]
    np.testing.assert_array_equal(made.get(), expected.astype(np.float16))


@pytest.mark.parametrize("char", "fd")
def test_math_is_within_two_ulp(cp, char):
    x = sample(10_000, char)

    made = sine((cp.asarray(x),)).get()

    np.testing.assert_array_max_ulp(made, np.sin(x.astype("d")).astype(char), 2)


def test_several_outputs_of_which_one_is_given(cp):
    x, y = sample(999, "i") + 7, sample(999, "i", 1) + 1
    out = cp.empty(999, "l")

    quotient, rest = divide((cp.asarray(x), cp.asarray(y)), (None, out))

    assert rest is out
    np.testing.assert_array_equal(quotient.get(), x // y)
    np.testing.assert_array_equal(rest.get(), x % y)


@pytest.mark.parametrize("shape", [(1001,), (20, 30)])
def test_where_leaves_the_rest(cp, shape):
    x, y, where = sample(shape, "f"), sample(shape, "f", 1), sample(shape, "?", 2)
    out, expected = cp.full(shape, 9, "f"), np.full(shape, 9, "f")

    add((cp.asarray(x), cp.asarray(y)), out, where=cp.asarray(where))

    np.testing.assert_array_equal(out.get(), np.add(x, y, out=expected, where=where))


@pytest.mark.parametrize("shift", [-5, -1, 0, 1, 5])
@pytest.mark.parametrize("step", [1, -1])
def test_overlap_is_as_in_numpy_on_the_first_and_the_fast_call(cp, shift, step):
    n = 50_000
    for _ in range(2):
        ours, theirs = cp.arange(n + 20.0), np.arange(n + 20.0)
        for memory, function in ((ours, add.fast), (theirs, np.add)):
            x, out = memory[5 : 5 + n], memory[5 + shift : 5 + shift + n][::step]
            function(x, x, out)
        np.testing.assert_array_equal(ours.get(), theirs)


def test_outputs_of_any_layout_are_written_in_place(cp):
    x = sample((50, 60), "d")
    for out in (
        cp.zeros((60, 50)).T,
        cp.zeros((100, 60))[::2],
        cp.zeros((50, 61))[:, :0:-1],
    ):
        assert add.fast(cp.asarray(x), cp.asarray(x), out) is out
        np.testing.assert_array_equal(out.get(), x + x)


ufunc_methods = CudaMethods(add, 0)


class Exporter:
    """A foreign array: it has the interface and nothing else."""

    def __init__(self, x, stream=None):
        self.array, self.stream = x, stream

    @property
    def __cuda_array_interface__(self):
        return {**self.array.__cuda_array_interface__, "stream": self.stream}


def test_numba_arrays_in_and_out(cp):
    cuda = _optional.numba_cuda()
    x, y = sample(1000, "f"), sample(1000, "f", 1)
    dx, dy = cuda.to_device(x), cuda.to_device(y)
    out = cuda.device_array(1000, np.float32)

    assert add.fast(dx, dy, out) is out
    np.testing.assert_array_equal(out.copy_to_host(), x + y)
    made = add((dx, cp.asarray(y)))
    assert type(made) is type(dx)
    np.testing.assert_array_equal(made.copy_to_host(), x + y)
    assert type(add((cp.asarray(y), dx))) is cp.ndarray


def test_foreign_arrays_in_and_out(cp):
    x = cp.asarray(sample((30, 40), "f"))
    out = Exporter(cp.zeros((40, 30), "f").T)

    assert add.fast(Exporter(x), x, out) is out
    np.testing.assert_array_equal(out.array.get(), (x + x).get())
    assert type(add((Exporter(x), 1.0))) is cp.ndarray


def test_torch_tensors_in_and_out():
    torch = pytest.importorskip("torch")
    x = torch.rand(1000, device="cuda")
    out = torch.empty_like(x)

    assert is_cuda(x)
    assert not is_cuda(x.cpu())
    assert add.fast(x, x, out) is out
    assert torch.equal(out, x + x)


def nodes(cp, call):
    """Return the kernels and other work that a call queues; to synchronise fails."""
    driver = importlib.import_module("cuda.bindings.driver")
    stream = cp.cuda.Stream(non_blocking=True)
    with stream:
        stream.begin_capture()
        call()
        graph = stream.end_capture()
    error, _, count = driver.cuGraphGetNodes(driver.CUgraph(graph.graph), 0)
    assert not error
    return count


def test_a_call_is_one_launch_and_nothing_else(cp):
    cuda = _optional.numba_cuda()
    x, y, o = (cp.asarray(sample((100, 100), "f", i)) for i in range(3))
    mask = x > 0
    foreign = cuda.device_array((100, 100), np.float32)
    calls = {
        "contiguous": lambda: add.fast(x, y, o),
        "broadcast": lambda: add.fast(x, y[0], o),
        "zero-d": lambda: add.fast(x, y[0, 0], o),
        "number": lambda: add.fast(x, 2.0, o),
        "numpy scalar": lambda: add.fast(x, np.float32(2), o),
        "strided": lambda: add.fast(x.T, y, o),
        "mask": lambda: add((x, y), o, where=mask),
        "numba": lambda: add.fast(x, y, foreign),
        "cast": lambda: above.fast(x, y, o),
    }
    for name, call in calls.items():
        call()  # compiles
        assert nodes(cp, call) == 1, name


@pytest.mark.parametrize("shape", [(1000,), (1000, 1)])
def test_a_thread_without_a_context_can_call(cp, shape):
    x, flat, strided = cp.ones(shape, "f"), cp.zeros(shape, "f"), cp.zeros(2000, "f")
    add.fast(x, x, flat)
    flat[...] = 0
    cp.cuda.Device().synchronize()

    def work():
        add.fast(x, x, flat)
        add.fast(x.ravel(), 1.0, strided[::2])

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert (flat.get() == 2).all()
    assert (strided[::2].get() == 2).all()


def test_work_goes_to_the_current_stream(cp):
    x, out = cp.ones(1 << 20, "f"), cp.zeros(1 << 20, "f")
    add.fast(x, x, out)
    out[...] = 0
    cp.cuda.Device().synchronize()
    stream = cp.cuda.Stream(non_blocking=True)

    with stream:
        stream.begin_capture()
        add.fast(x, x, out)
        graph = stream.end_capture()

    assert not out.get().any()  # it was captured on that stream, and not run
    graph.launch(stream)
    stream.synchronize()
    assert (out.get() == 2).all()


def test_the_stream_of_a_foreign_array_is_waited_for_and_waits(cp):
    n = 1 << 26
    theirs = cp.cuda.Stream(non_blocking=True)
    x, out = cp.zeros(n, "f"), cp.zeros(n, "f")
    cp.cuda.Device().synchronize()
    add((Exporter(x, theirs.ptr), 1.0), Exporter(out, theirs.ptr))
    cp.cuda.Device().synchronize()
    with theirs:
        for _ in range(50):
            x += 1
    add((Exporter(x, theirs.ptr), 1.0), Exporter(out, theirs.ptr))
    with theirs:
        out += 1
        x[...] = 0

    cp.cuda.Device().synchronize()
    assert float(out[0]) == float(out[-1]) == 52


@pytest.mark.full_card
def test_more_elements_than_32_bits_count(cp):
    n = 2**31 + 7
    x = cp.ones(n, "b")
    out = cp.empty(n, "b")

    add.fast(x, x, out)

    assert int(out[0]) == int(out[-1]) == int(out[2**31]) == 2
    add.fast(x[::-1], x, out)
    assert bool((out == 2).all())
    out[...] = 0
    add.fast(x[1:], x[:-1], out[1:])  # misaligned
    assert int(out[0]) == 0
    assert bool((out[1:] == 2).all())
    rows = n // 2**16
    square, row = (v[: rows * 2**16].reshape(rows, -1) for v in (x, out))
    out[...] = 0
    add.fast(square, square[0], row)
    assert bool((row == 2).all())
    total = ufunc_methods.reduce(x, axis=0, dtype="l")
    assert int(total) == n


def test_float64_is_not_shortened_by_a_float_out(cp):
    x, out = cp.asarray(sample(100, "d")), cp.empty(100, "f")

    add.fast(x, x, out)

    np.testing.assert_array_equal(out.get(), (x.get() * 2).astype("f"))


def test_a_read_only_exporter_is_refused_as_out(cp):
    class ReadOnly(Exporter):
        @property
        def __cuda_array_interface__(self):
            interface = super().__cuda_array_interface__
            return {**interface, "data": (interface["data"][0], True)}

    x = cp.ones(3)
    with pytest.raises(ValueError, match="read-only"):
        add((x, x), ReadOnly(cp.zeros(3)))
