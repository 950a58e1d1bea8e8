"""The CUDA templates without a GPU: compiled by the host's C++ compiler, and run.

All is real but the driver: plans, the launch in machine code, its parameters, and the
kernels' own text, in which only the few lines of PTX are replaced.
"""

import ctypes
import itertools
import re
import shutil
import subprocess
import weakref
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import xdev
from xdev import _optional
from xdev.compile import elementwise, machine_launch
from xdev.ufunc import (
    cuda,
    cuda_call,
    cuda_fast,
    cuda_methods,
    cuda_operands,
    cuda_scatter,
    foreign,
)
from xdev.ufunc.scalar import ScalarFunction

COMPILER = shutil.which("g++") or shutil.which("clang++")
if not _optional.installed("cupy"):
    pytest.skip("needs CuPy: the group cuda", allow_module_level=True)
if COMPILER is None:
    pytest.skip("needs a C++ compiler", allow_module_level=True)
cupy = _optional.cupy()
HERE = Path(__file__).parent
TEMPLATES = Path(elementwise.__file__).parent / "templates"

# The scalar functions in Python, and what stands for their machine code.
FUNCTIONS = {
    "add": (lambda x, y: x + y, "*o = to<O>(*a) + to<O>(*b);"),
    "first": (lambda x, y: x if x != 0 else y, "*o = *a != 0 ? *a : *b;"),
    "same": (lambda x: x, "*o = *a;"),
    "above": (lambda x, y: x > y, "*o = *a > *b;"),
    "chain": (lambda x, y, z: x * y + z, "*o = *a * *b + *c;"),
}
OPERATORS = """
template <class To, class From> To to(From x) { return xdev::convert<To>(x); }
template <class T> xdev::complex<T> operator+(xdev::complex<T> a, xdev::complex<T> b)
{
    return {a.re + b.re, a.im + b.im};
}
"""
PTX = {
    r'asm\("cvt.f32.f16[^;]*;"[^;]*;': "_Float16 h; memcpy(&h, &x, 2); y = h;",
    r'asm\("cvt.rn.f16[^;]*;"[^;]*;': "_Float16 h = x; memcpy(&y, &h, 2);",
    r'asm volatile\("st.global[^;]*;"[^;]*;': "*address = word;",
}


def text(name, seen):
    """Return a template with what it includes, each file once."""
    found = (TEMPLATES / name).read_text()
    for pattern, host in PTX.items():
        found = re.sub(pattern, host, found)

    def included(match):
        if match[1] in seen:
            return ""
        seen.add(match[1])
        return text(match[1], seen)

    return re.sub(r'#include "(.*)"', included, found)


def source(name, kernel):
    """Return a C++ file with a kernel and a function that runs its blocks."""
    macros = dict(kernel.macros())
    *reads, write = macros["XDEV_SIGNATURE"].split(",")
    named = [f"{kind} {letter}" for kind, letter in zip(reads, "abcd", strict=False)]
    parameter = {
        "rows": "xdev::Parameters<{}>",
        "strided": "xdev::Parameters<{}>",
        "reduce": "xdev::Reduction",
        "scan": "xdev::Scan",
        "scatter": "xdev::Scatter",
    }[kernel.template]
    slots = len(getattr(kernel, "operands", ())) + getattr(kernel, "masked", False)
    parameter = parameter.format(slots)
    waits = kernel.template in {"reduce", "scan"} and kernel.group != 1
    threads = (
        "fibers::run(thread, p);"
        if waits
        else "for (threadIdx.x = 0; threadIdx.x < XDEV_BLOCK; ++threadIdx.x) thread(p);"
    )
    return f"""
{"".join(f"#define {k} {v}{chr(10)}" for k, v in macros.items())}
#include "{HERE / "host_cuda.h"}"
{text(f"{kernel.template}.cu", set())}
{OPERATORS}
extern "C" void xdev_function({", ".join([*named, f"{write} o"])})
{{
    typedef {write[:-1]} O;
    {FUNCTIONS[name][1]}
}}
static void thread(void* p) {{ {kernel.entry}(*({parameter}*)p); }}
extern "C" void kernel(void* p, unsigned blocks)
{{
    for (blockIdx.x = 0; blockIdx.x < blocks; ++blockIdx.x) {{ {threads} }}
}}
"""


def compiled(folder, name, content):
    """Return the library that a C++ text makes."""
    file = folder / f"{name}.cpp"
    file.write_text(content)
    library = file.with_suffix(".so")
    command = [
        COMPILER,
        "-std=c++17",
        "-O1",
        "-U_FORTIFY_SOURCE",
        "-fno-strict-aliasing",
        "-w",
        "-shared",
    ]
    subprocess.run([*command, "-fPIC", file, "-o", library], check=True)
    return ctypes.CDLL(str(library))


def on_device(x):
    """Return a CuPy array of host memory."""
    low, high = np.lib.array_utils.byte_bounds(x) if x.size else (x.ctypes.data,) * 2
    memory = cupy.cuda.UnownedMemory(low, max(high - low, 1), x, 0)
    pointer = cupy.cuda.MemoryPointer(memory, x.ctypes.data - low)
    return cupy.ndarray(x.shape, x.dtype, pointer, x.strides)


def to_host(x):
    """Return a copy of a CuPy array of host memory."""
    raw = (ctypes.c_char * max(x.data.mem.size, 1)).from_address(x.data.mem.ptr)
    start = x.data.ptr - x.data.mem.ptr
    return np.ndarray(x.shape, x.dtype, raw, start, x.strides).copy()


def straightened(x, order):
    view = to_host(on_device(np.zeros(0)) if not x.shape else _viewed(x))
    made = on_device(np.ascontiguousarray(view.transpose(order)))
    return cuda_operands.Array(
        made, made.data.ptr, made.shape, made.strides, made.dtype
    )


def _viewed(x):
    reach = x.reach
    memory = cupy.cuda.UnownedMemory(
        x.address + reach.low, reach.high - reach.low, x.owner, 0
    )
    pointer = cupy.cuda.MemoryPointer(memory, -reach.low)
    return cupy.ndarray(x.shape, x.dtype, pointer, x.strides)


@contextmanager
def no_order(_):
    yield 0


class HostArray:
    """The little of CuPy that methods use besides launches."""

    def __init__(self, values, dtype):
        self.host = np.asarray(values, dtype)
        self.data = SimpleNamespace(ptr=self.host.ctypes.data)
        self.size, self.ndim = self.host.size, self.host.ndim
        self.min, self.max = self.host.min, self.host.max


@pytest.fixture(scope="module")
def gpu(tmp_path_factory):
    """Stand for a GPU: its memory is the host's, its launches run there."""
    folder = tmp_path_factory.mktemp("kernels")
    driver = compiled(folder, "driver", (HERE / "host_driver.cpp").read_text())
    address = machine_launch._address
    starter = machine_launch.Starter(
        address(driver.current_stream), address(driver.launch)
    )
    kernels = {}

    def kernel(loops, _, template):
        name = loops.scalar.name
        key = name, template.entry, *template.macros()
        if key not in kernels:
            made = compiled(folder, f"k{len(kernels)}", source(name, template))
            kernels[key] = SimpleNamespace(handle=address(made.kernel), library=made)
        return kernels[key]

    def allocate(nbytes):
        memory = np.empty(max(nbytes, 1), np.uint8)
        unowned = cupy.cuda.UnownedMemory(memory.ctypes.data, memory.nbytes, memory, 0)
        return cupy.cuda.MemoryPointer(unowned, 0)

    def streams():
        return SimpleNamespace(get=lambda _: None, known={0: None})

    runtime = SimpleNamespace(getDevice=lambda: 0)
    shim = SimpleNamespace(asarray=HostArray, cuda=SimpleNamespace(runtime=runtime))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cuda.CudaLoops, "kernel", kernel)
        patch.setattr(machine_launch, "starter", lambda: starter)
        patch.setattr(cuda.launch, "streams", streams)
        patch.setattr(cuda_fast, "devices", lambda: 1)
        for module in (cuda, cuda_methods):
            patch.setattr(module, "require", lambda: None)
        for module in (cuda.cuda_streams, cuda_call.cuda_streams):
            patch.setattr(module, "ordered", no_order)
        for module in (cuda_call, cuda_methods):
            patch.setattr(module, "straightened", straightened)
        patch.setattr(
            cuda_operands.Array,
            "cupy",
            lambda x: SimpleNamespace(copy=lambda: on_device(to_host(_viewed(x)))),
        )
        for module in (cuda_methods, cuda_scatter):
            patch.setattr(module, "_optional", SimpleNamespace(cupy=lambda: shim))
        with cupy.cuda.using_allocator(allocate):
            yield driver


def loops(name):
    function = FUNCTIONS[name][0]
    function.__name__ = name
    return cuda.CudaLoops(ScalarFunction(function))


def methods(name, identity=None):
    return cuda_methods.CudaMethods(loops(name), identity)


def sample(shape, char, seed=0):
    rng = np.random.default_rng(seed)
    dtype = np.dtype(char)
    if dtype.kind == "c":
        return (rng.integers(-9, 9, shape) + 1j * rng.integers(-9, 9, shape)).astype(
            dtype
        )
    if dtype.kind == "b":
        return rng.random(shape) < 0.5
    return rng.integers(0, 9, shape).astype(dtype)


SUM = loops("add")
pytestmark = pytest.mark.usefixtures("gpu")


@pytest.mark.parametrize("char", "behfdFD")
def test_contiguous_and_misaligned_arrays_of_any_dtype(char):
    for n, (i, j, k) in itertools.product(
        (1, 15, 257, 1500), ((0, 0, 0), (1, 0, 0), (0, 3, 1), (2, 2, 2), (5, 1, 3))
    ):
        x, y, out = (sample(n + s, char, s)[s:] for s in (i, j, k))
        whole = out.base if out.base is not None else out
        before = whole[: len(whole) - n].copy()

        SUM.fast(on_device(x), on_device(y), on_device(out))

        np.testing.assert_array_equal(out, x + y)
        np.testing.assert_array_equal(whole[: len(before)], before)


ROWS = {
    "row": lambda x: x[0],
    "column": lambda x: x[:, :1],
    "slice": lambda x: x[:, 3:60],
    "odd": lambda x: x[:, 1:],
    "every other row": lambda x: x[::2],
    "transposed": lambda x: x.T,
    "every other column": lambda x: x[:, ::2],
    "backwards": lambda x: x[::-1, ::-1],
    "one": lambda x: x[2:3, 2:3],
}


@pytest.mark.parametrize("char", "bf")
@pytest.mark.parametrize("name", ROWS)
def test_rows_of_matrices_in_any_layout(gpu, name, char):
    x, y = (sample((70, 70), char, seed) for seed in range(2))
    x, y = (
        x[: ROWS[name](x).shape[0]] if name == "every other row" else x,
        ROWS[name](y),
    )
    if name in {"slice", "odd", "every other column"}:
        x = ROWS[name](x)
    for out in (
        np.zeros(x.shape, char),
        np.zeros((x.shape[0], x.shape[1] + 1), char)[:, 1:],
    ):
        for _ in range(2):  # the second time by the fast way
            out[...] = 0
            before = ctypes.c_longlong.in_dll(gpu, "launches").value
            SUM.fast(on_device(x), on_device(y), on_device(out))
            assert ctypes.c_longlong.in_dll(gpu, "launches").value == before + 1
            np.testing.assert_array_equal(out, x + y)


@pytest.mark.parametrize("number", [3, 2.5, np.float32(1.5)], ids=repr)
def test_numbers_go_by_value_the_first_and_the_second_time(number):
    x = sample(100, "f")
    add = loops("add")
    for value in (number, type(number)(7)):
        made = add.fast(on_device(x), value, None)
        assert made.dtype == (x + value).dtype
        np.testing.assert_array_equal(to_host(made), x + value)
        made = add.fast(value, on_device(x), None)
        np.testing.assert_array_equal(to_host(made), value + x)


def test_a_number_that_does_not_fit_is_refused_every_time():
    x = on_device(sample(100, "b"))
    add = loops("add")
    np.testing.assert_array_equal(
        to_host(add.fast(x, -128, None)), to_host(x) + np.int8(-128)
    )
    for _ in range(2):
        with pytest.raises(OverflowError):
            add.fast(x, 200, None)


@pytest.mark.parametrize("shift", [-5, -1, 0, 1, 5])
def test_overlap_is_as_in_numpy_on_every_way(shift):
    add = loops("add")
    for _ in range(3):
        ours, theirs = np.arange(200.0), np.arange(200.0)
        for memory, call in ((ours, add.fast), (theirs, np.add)):
            x, out = memory[10:150], memory[10 + shift : 150 + shift]
            x, out = (x, out) if call is np.add else (on_device(x), on_device(out))
            call(x, 1.0, out)
        np.testing.assert_array_equal(ours, theirs)


def test_a_mask_and_three_operands():
    x, y, z = (sample((9, 40), "d", seed) for seed in range(3))
    out, expected = np.full((9, 40), 5.0), np.full((9, 40), 5.0)
    where = sample((9, 40), "?")

    loops("chain")(
        [on_device(v) for v in (x, y, z)], on_device(out), where=on_device(where)
    )

    np.copyto(expected, x * y + z, where=where)
    np.testing.assert_array_equal(out, expected)


SHAPES = [(5,), (70,), (3000,), (300_000,), (40, 50), (3, 4000), (2000, 3), (6, 70, 40)]


@pytest.mark.parametrize("name", ["add", "first"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_reductions_along_each_axis_keep_the_order(name, shape):
    ufunc = methods(name)
    x = sample(shape, "l") * (sample(shape, "?", 1) | (name == "add"))
    plain = np.frompyfunc(FUNCTIONS[name][0], 2, 1) if name == "first" else np.add
    for axis in range(len(shape)):
        result = ufunc.reduce(on_device(x), axis=axis, dtype="l")

        expected = np.asarray(plain.reduce(x, axis), "l")
        np.testing.assert_array_equal(to_host(result), expected)


@pytest.mark.parametrize("char", "behfdFD")
def test_reductions_of_every_dtype_and_alignment(char):
    ufunc = methods("add", 0)
    for n, start in ((40_000, 0), (40_000, 1), (5000, 3), (100, 1)):
        x = sample(n + start, char)[start:]
        if char in "eb":
            x = (x % 2).astype(char) if char == "e" else x
        result = to_host(ufunc.reduce(on_device(x), axis=None, dtype=char))

        expected = x.sum(dtype="f" if char == "e" else char).astype(char)
        assert result.dtype == expected.dtype
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("axis", [None, (0, 1), (1, 2), (0, 2), -1, ()], ids=str)
@pytest.mark.parametrize("order", ["C", "F"])
def test_reductions_of_several_axes_with_masks_and_out(axis, order):
    ufunc = methods("add", 0)
    x, where = sample((6, 5, 70), "d"), sample((5, 70), "?", 3)
    x = np.asarray(x, order=order)
    for keepdims, mask, initial in itertools.product(
        (False, True), (True, where), (0, 5)
    ):
        expected = np.add.reduce(
            x, axis, keepdims=keepdims, where=mask, initial=initial
        )
        out = np.full(expected.shape, -1.0, order="F")
        there = mask if mask is True else on_device(mask)
        given = {"keepdims": keepdims, "where": there, "initial": initial}
        result = ufunc.reduce(on_device(x), axis=axis, dtype="d", **given)
        np.testing.assert_array_equal(to_host(result), expected)
        ufunc.reduce(on_device(x), axis=axis, dtype="d", out=on_device(out), **given)
        np.testing.assert_array_equal(out, expected)


def test_reductions_of_nothing():
    ufunc = methods("add", 0)
    x = on_device(np.zeros((0, 3)))

    assert to_host(ufunc.reduce(x, axis=0, dtype="d")).tolist() == [0, 0, 0]
    assert ufunc.reduce(x, axis=1, dtype="d").shape == (0,)
    ufunc = methods("add")
    with pytest.raises(ValueError, match="identity"):
        ufunc.reduce(x, axis=0, dtype="d")
    with pytest.raises(ValueError, match="one axis at a"):
        ufunc.reduce(x, axis=None, dtype="d")
    with pytest.raises(ValueError, match="initial="):
        ufunc.reduce(x, axis=0, dtype="d", where=on_device(np.array([True])))


@pytest.mark.parametrize("name", ["add", "first"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_scans_along_each_axis_keep_the_order(name, shape):
    ufunc = methods(name)
    x = sample(shape, "l") * (sample(shape, "?", 1) | (name == "add"))
    plain = np.frompyfunc(FUNCTIONS[name][0], 2, 1) if name == "first" else np.add
    for axis in range(len(shape)):
        result = ufunc.accumulate(on_device(x), axis=axis, dtype="l", out=None)

        expected = plain.accumulate(x, axis).astype("l")
        np.testing.assert_array_equal(to_host(result), expected)


def test_scans_in_place_of_slices_and_of_other_dtypes():
    ufunc = methods("add")
    for char in "eD":
        x = (sample(2000, char) != 0).astype(char)
        expected = np.add.accumulate(x.astype("d" if char == "e" else char)).astype(
            char
        )
        ours = x.copy()
        ufunc.accumulate(on_device(ours), axis=0, dtype=char, out=on_device(ours))
        np.testing.assert_array_equal(ours, expected)
    x = sample((50, 300), "i")[::2, ::-1]
    result = ufunc.accumulate(on_device(x), axis=1, dtype="i", out=None)
    np.testing.assert_array_equal(to_host(result), np.add.accumulate(x, 1, dtype="i"))


@pytest.mark.parametrize("axis", [0, 1])
def test_slices_are_folded_as_numpy_does(axis):
    ufunc = methods("add")
    x = sample((300, 400), "d")
    for indices in ([0, 5, 299], [7, 3, 3, 250, 0], [299], list(range(0, 300, 2))):
        result = ufunc.reduceat(
            on_device(x), indices=indices, axis=axis, dtype="d", out=None
        )
        np.testing.assert_array_equal(
            to_host(result), np.add.reduceat(x, indices, axis)
        )
    with pytest.raises(IndexError, match="0 to"):
        ufunc.reduceat(on_device(x), indices=[500], axis=axis, dtype="d", out=None)


def test_outer_pairs_every_element():
    ufunc = methods("add")
    x, y = sample((3, 4), "f"), sample((5,), "d", 1)

    made = ufunc.outer(on_device(x), on_device(y), None, {})

    np.testing.assert_array_equal(to_host(made), np.add.outer(x, y))
    np.testing.assert_array_equal(
        to_host(ufunc.outer(2.0, on_device(y), None, {})), np.add.outer(2.0, y)
    )


def test_scatters_apply_repeated_positions_in_order():
    made = loops("add")
    x, y, expected = np.zeros(50, "f"), sample(4000, "d"), np.zeros(50, "f")
    positions = np.random.default_rng(2).integers(0, 50, 4000)
    order = np.argsort(positions, kind="stable")
    found = made.scalar.specialise((np.dtype("d"),) * 2)
    kernel = cuda_scatter.Scatter(x.dtype, y.dtype, found.inputs, found.outputs[0])
    operands = [x, positions[order], order, y]

    launch = cuda_scatter.prepared(made, found, kernel, 4000)
    launch(0, [each.ctypes.data for each in operands])

    np.add.at(expected, positions, y)
    np.testing.assert_array_equal(x, expected)


class Tensor:
    """Another library's array, with a dtype that NumPy does not know."""

    dtype = "tensor.long"

    def __init__(self, array):
        self.array = array


class Tensors:
    """The adapter to it: it is told nothing of streams."""

    on_cuda = staticmethod(lambda _: True)
    native = staticmethod(lambda x, _: x.array)
    stream = staticmethod(lambda _: None)
    claim = staticmethod(lambda *_: None)
    lift = staticmethod(lambda made, _: Tensor(made))


def test_methods_of_other_libraries_arrays(monkeypatch):
    monkeypatch.setitem(foreign._known, Tensor, Tensors())
    total = xdev.vectorize(FUNCTIONS["add"][0], identity=0)
    x = sample((3, 40), "l")
    there = Tensor(on_device(x))
    out = Tensor(on_device(np.zeros(40, "l")))

    for found, expected in (
        (total.reduce(there, axis=1), np.add.reduce(x, axis=1)),
        (total.reduce(there, dtype="f4"), np.add.reduce(x, dtype="f4")),
        (total.accumulate(there), np.add.accumulate(x)),
        (total.reduceat(there, [0, 2]), np.add.reduceat(x, [0, 2])),
        (total.outer(there, there), np.add.outer(x, x)),
        (total(there, there), x + x),
        (total.reduce(there, out=out), np.add.reduce(x)),
    ):
        assert type(found) is Tensor
        np.testing.assert_array_equal(to_host(found.array), expected, strict=True)
    assert total.reduce(there, out=out) is out


@pytest.mark.parametrize("shape", [(9,), (3, 3)])
def test_a_refused_launch_holds_no_result(monkeypatch, shape):
    """A stream that is new, as each capture's is: two results would be taken."""
    alive, most = [], []
    make = cuda_fast.array_maker()

    def watched(*args):
        made = make(*args)
        alive[:] = [each for each in alive if each() is not None]
        alive.append(weakref.ref(made))
        most.append(len(alive))
        return made

    def slow(*_):
        return watched(shape, "f")

    refusing = SimpleNamespace(start=lambda *_: machine_launch.NEW_STREAM)
    for name, x in (("same", ()), ("add", (1,)), ("chain", (1, 2))):
        one = loops(name)
        operands = [on_device(sample(shape, "f", k)) for k in (0, *x)]
        one.fast(*operands, None)  # the plan is known from now on
        with monkeypatch.context() as patch:
            patch.setattr(cuda_fast, "array_maker", lambda: watched)
            patch.setattr(cuda_fast.machine_launch, "starter", lambda: refusing)
            path = cuda_fast.path(slow, one._known, len(operands))
        path(*operands, None)
    assert len(most) > 3
    assert max(most) == 1


def test_bfloat16_is_computed_in_float32_and_rounded_once():
    brain = np.dtype(pytest.importorskip("ml_dtypes").bfloat16)
    x, y = (
        np.random.default_rng(k).normal(0, 9, (70, 33)).astype(brain) for k in (0, 1)
    )
    chain = loops("chain")
    for view in (lambda x: x, lambda x: x[:, 1:], lambda x: x[::2, ::3], np.transpose):
        a, b = view(x), view(y)
        expected = (a.astype("f4") * b.astype("f4") + a.astype("f4")).astype(brain)
        for _ in range(2):
            made = chain.fast(on_device(a), on_device(b), on_device(a), None)
            assert made.dtype == brain
            assert to_host(made).view("u2").tolist() == expected.view("u2").tolist()
    by_number = SUM.fast(on_device(x), 2.5, None)
    expected = (x.astype("f4") + np.float32(2.5)).astype(brain)
    assert by_number.dtype == brain
    np.testing.assert_array_equal(to_host(by_number), expected)


@pytest.mark.parametrize("storage", ["bfloat16", "f2"])
def test_every_float_is_rounded_to_a_half_as_numpy_does(storage):
    pytest.importorskip("ml_dtypes")
    bits = np.arange(0, 2**32, 40_009, dtype=np.uint64).astype(np.uint32)
    x = bits.view(np.float32)
    x = x[~np.isnan(x)]
    for values in (x, x.astype("d") * (1 + 2.0**-30)):
        out = np.zeros(x.size, storage)
        with np.errstate(over="ignore"):
            expected = values.astype(storage)
        loops("same").fast(on_device(values), on_device(out))
        np.testing.assert_array_equal(out.view("u2"), expected.view("u2"))
    nan, out = np.full(3, np.nan, "f4"), np.zeros(3, storage)
    loops("same").fast(on_device(nan), on_device(out))
    assert np.isnan(out.astype("f4")).all()


def test_reductions_and_scans_of_bfloat16_fold_in_float32():
    brain = np.dtype(pytest.importorskip("ml_dtypes").bfloat16)
    x = (sample((40, 300), "i") % 3).astype(brain)
    ufunc = methods("add", 0)

    for axis in (0, 1, None):
        expected = x.astype("f4").sum(axis=axis).astype(brain)
        found = to_host(ufunc.reduce(on_device(x), axis=axis))
        assert found.dtype == brain
        np.testing.assert_array_equal(found, expected)
    found = to_host(ufunc.accumulate(on_device(x), axis=1, dtype=None, out=None))
    expected = np.add.accumulate(x.astype("f4"), 1).astype(brain)
    np.testing.assert_array_equal(found, expected)
