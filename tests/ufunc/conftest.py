"""A stand-in for a GPU: the CUDA templates, compiled by the host's C++ compiler.

All is real but the driver: plans, the launch in machine code, its parameters, and the
kernels' own text, in which only the few lines of PTX are replaced.
"""

import ctypes
import math
import re
import shutil
import struct
import subprocess
import sys
from contextlib import contextmanager, nullcontext
from functools import cache, partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import running

from xdev import _config, _optional, native
from xdev.compile import cubins, threads
from xdev.device.streams import live_streams
from xdev.facade import (
    cuda as facade_cuda,
    cuda_copies,
    cuda_launches,
    cuda_libraries,
    cuda_searching,
    dispatch,
    elementwise,
    searching,
)
from xdev.memory.arrays import array_maker
from xdev.ufunc import cuda, cuda_methods, cuda_operands, foreign, grids, vectorize

COMPILER = shutil.which("g++") or shutil.which("clang++")
HERE = Path(__file__).parent
sys.path += map(str, (HERE, HERE.parent))  # for the modules that several files use
TEMPLATES = Path(cubins.__file__).parent / "templates"

# The scalar functions in Python, and what stands for their machine code.
FUNCTIONS = {
    "add": (lambda x, y: x + y, "*o = to<O>(*a) + to<O>(*b);"),
    "first": (lambda x, y: x if x != 0 else y, "*o = *a != 0 ? *a : *b;"),
    "same": (lambda x: x, "*o = *a;"),
    "subtract": (lambda x, y: x - y, "*o = *a - *b;"),
    "positive": (lambda x: +x, "*o = *a;"),
    "logical_and": (lambda x, y: x and y, "*o = to<bool>(*a) && to<bool>(*b);"),
    "multiply": (lambda x, y: x * y, "*o = *a * *b;"),
    "above": (lambda x, y: x > y, "*o = *a > *b;"),
    "remainder": (lambda x, y: x % y, "*o = *a % *b;"),
    "floor_divide": (lambda x, y: x // y, "*o = *a / *b;"),
    "chain": (lambda x, y, z: x * y + z, "*o = *a * *b + *c;"),
    "sin": (lambda x: +np.sin(x), "*o = __builtin_sin(*a);"),
    "where": (lambda m, x, y: x if m else y, "*o = *a ? *b : *c;"),
    "clip": (
        lambda x, a, b: min(max(x, a), b),
        "*o = *a < *b ? *b : *a > *c ? *c : *a;",
    ),
}
for _name, (_function, _) in FUNCTIONS.items():
    _function.__name__ = _name
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


def program(kernel, parameter, waits, function=""):
    """Return a C++ file with a kernel and a function that runs its blocks."""
    lanes = "for (threadIdx.x = 0; threadIdx.x < XDEV_BLOCK; ++threadIdx.x) thread(p);"
    return f"""
{"".join(f"#define {k} {v}{chr(10)}" for k, v in kernel.macros())}
#include "{HERE / "host_cuda.h"}"
{text(f"{kernel.template}.cu", set())}
{function}
static void thread(void* p) {{ {kernel.entry}(*(xdev::{parameter}*)p); }}
extern "C" void kernel(void* p, unsigned blocks)
{{
    for (blockIdx.x = 0; blockIdx.x < blocks; ++blockIdx.x) {{
        {"fibers::run(thread, p);" if waits else lanes}
    }}
}}
"""


def of_function(name, kernel):
    """Return the same for a kernel that calls a scalar function."""
    *reads, write = dict(kernel.macros())["XDEV_SIGNATURE"].split(",")
    named = [f"{kind} {letter}" for kind, letter in zip(reads, "abcd", strict=False)]
    function = f"""{OPERATORS}
extern "C" void xdev_function({", ".join([*named, f"{write} o"])})
{{
    typedef {write[:-1]} O;
    {FUNCTIONS[name][1]}
}}"""
    slots = len(getattr(kernel, "operands", ())) + getattr(kernel, "masked", False)
    own = {"reduce": "Reduction", "scan": "Scan", "scatter": "Scatter"}
    parameter = own.get(kernel.template, f"Parameters<{slots}>")
    waits = kernel.template in {"reduce", "scan"} and (
        kernel.group != 1 or getattr(kernel, "joining", 0)
    )
    return program(kernel, parameter, waits, function)


def compiled(folder, name, content):
    file = folder / f"{name}.cpp"
    file.write_text(content)
    library = file.with_suffix(".so")
    options = "-std=c++20 -O1 -U_FORTIFY_SOURCE -fno-strict-aliasing -w -shared -fPIC"
    options += " -fno-gnu-unique"  # each has shared memory of its own
    subprocess.run([COMPILER, *options.split(), file, "-o", library], check=True)
    return ctypes.CDLL(str(library))


def address_of(function):
    return ctypes.cast(function, ctypes.c_void_p).value


class HostArray(np.ndarray):
    """What methods compute by CuPy besides launches: with an address as CuPy's have."""

    @property
    def data(self):
        return SimpleNamespace(ptr=self.ctypes.data)


def by_numpy(name, **options):
    """Return a function of NumPy's in the place of CuPy's."""

    def call(x, *args, **keywords):
        x = HostGpu.host(x) if isinstance(x, _optional.cupy().ndarray) else x
        return getattr(np, name)(x, *args, **keywords, **options).view(HostArray)

    return call


class Copied:
    """What CuPy makes copies of an operand by."""

    def __init__(self, x):
        self._values = HostGpu.host(x)

    def transpose(self, axes):
        self._values = self._values.transpose(axes)
        return self

    def copy(self, order="C"):
        return HostGpu.array(self._values.copy(order))

    def astype(self, dtype):
        return HostGpu.array(self._values.astype(dtype))


class Devices:
    """Some devices, one of them current; what is asked of the driver is counted."""

    def __init__(self, count):
        self.count, self.current, self.asked, self.marked = count, 0, [], []
        self._get = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int)(self.get)
        two = ctypes.c_int, ctypes.c_int
        self._use = ctypes.PYFUNCTYPE(ctypes.py_object, *two)(self.use)
        self.functions = address_of(self._get), address_of(self._use)

    def get(self, *_):
        self.asked.append("get")
        return self.current

    def use(self, index, _=0):
        assert 0 <= index < self.count, "invalid device ordinal"
        self.asked.append("set")
        self.current = index

    def attributes(self, address):
        """All memory is the first device's, and the first page nobody's."""
        self.asked.append("attributes")
        return SimpleNamespace(device=-2 if address < 4096 else 0)

    @contextmanager
    def using(self, index):
        before = self.current
        self.use(index)
        yield
        self.use(before)


class HostGpu:
    """A GPU whose memory is the host's, and whose launches run there."""

    def __init__(self, driver, folder):
        self._driver, self._folder = driver, folder

    def connect(self, new, mark=print, of_stream=0, devices=None):
        """Have calls launch here, and make their results by a function."""
        driver = self._driver
        addresses = address_of(driver.launch), address_of(driver.current_stream)
        addresses += (0, 0) if devices is None else devices.functions
        array = _optional.cupy().ndarray
        several = devices is not None and devices.count > 1
        native.calls.connect(*addresses, array, new, mark, several, of_stream)

    @contextmanager
    def devices(self, count, of_stream=0):
        """Have so many devices, whose calls are counted."""
        cuda = _optional.cupy().cuda
        with pytest.MonkeyPatch.context() as patch:
            made = Devices(count)
            patch.setattr(cuda_operands.BACKEND, "count", lambda: count)
            patch.setattr(cuda.runtime, "getDevice", made.get)
            patch.setattr(cuda.runtime, "pointerGetAttributes", made.attributes)
            patch.setattr(cuda, "Device", made.using)
            new = array_maker()
            self.connect(new, made.marked.append, of_stream, made)
            try:
                with cuda.using_allocator(lambda size: allocate(size, made.current)):
                    yield made
            finally:
                self.connect(new)

    def use_stream(self, handle):
        ctypes.c_longlong.in_dll(self._driver, "stream").value = handle

    @property
    def launches(self):
        return ctypes.c_longlong.in_dll(self._driver, "launches").value

    @property
    def shape(self):
        """The last launch's blocks, and threads of each, along x, y and z."""
        found = tuple((ctypes.c_uint * 6).in_dll(self._driver, "shape"))
        return found[:3], found[3:]

    @property
    def functions(self):
        return {name: function for name, (function, _) in FUNCTIONS.items()}

    def moves(self, kernel):
        name = re.search(r"::(\w+)", kernel.entry)[1]
        own = {"cross", "join", "ramp", "search", "take", "triangle", "turn"}
        parameter = name.capitalize() if name in own else "Order"
        words = [kernel.entry, *(str(v) for _, v in kernel.macros())]
        content = program(kernel, parameter, waits=True)
        library = compiled(self._folder, re.sub(r"\W+", "_", "_".join(words)), content)
        return SimpleNamespace(handle=address_of(library.kernel), library=library)

    @staticmethod
    def array(x, device=0):
        cupy = _optional.cupy()
        bounds = np.lib.array_utils.byte_bounds
        low, high = bounds(x) if x.size else (x.ctypes.data,) * 2
        memory = cupy.cuda.UnownedMemory(low, max(high - low, 1), x, device)
        pointer = cupy.cuda.MemoryPointer(memory, x.ctypes.data - low)
        return cupy.ndarray(x.shape, x.dtype, pointer, x.strides)

    @staticmethod
    def host(x):
        """Return a copy of a CuPy array of host memory, or of an operand."""
        if isinstance(x, _optional.cupy().ndarray):
            x = cuda_operands.Array.of(x)
        low, high = x.reach
        raw = (ctypes.c_char * max(high - low, 1)).from_address(x.address + low)
        return np.ndarray(x.shape, x.dtype, raw, -low, x.strides).copy()

    def ufunc(self, name, identity=None):
        """Return a function's ufunc, with nothing known yet."""
        return vectorize(self.functions[name], identity=identity)

    def statistic(self, name):
        """Return a reduction that makes something of sums, with nothing known yet."""
        return cuda_methods.CudaMethods(self.ufunc("add")._cuda, 0, name)

    sample = staticmethod(running.sample)


def host_kernels(folder):
    """Return what stands for ``CudaLoops.kernel``: each is compiled once."""
    made = {}

    def kernel(loops, _, template):
        name = loops.scalar.name.removeprefix("xdev.")
        key = name, template.entry, *template.macros()
        if key not in made:
            library = compiled(folder, f"k{len(made)}", of_function(name, template))
            handle = address_of(library.kernel)
            made[key] = SimpleNamespace(handle=handle, library=library)
        return made[key]

    return kernel


def allocate(nbytes, device=0):
    cupy, memory = _optional.cupy(), np.empty(max(nbytes, 1), np.uint8)
    place = memory.ctypes.data, memory.nbytes, memory, device
    unowned = cupy.cuda.UnownedMemory(*place)
    return cupy.cuda.MemoryPointer(unowned, 0)


@pytest.fixture(scope="module")
def gpu(tmp_path_factory):
    """Stand for a GPU while a module's tests run."""
    if not _optional.installed("cupy"):
        pytest.skip("needs CuPy: the group cuda")
    if COMPILER is None:
        pytest.skip("needs a C++ compiler")
    from stand_ins import no_order

    folder = tmp_path_factory.mktemp("kernels")
    driver = compiled(folder, "driver", (HERE / "host_driver.cpp").read_text())
    made = HostGpu(driver, folder)

    def copied(x):
        return Copied(x)

    def contiguous(x):
        own = isinstance(x, _optional.cupy().ndarray) and x.flags.c_contiguous
        return x if own else by_numpy("ascontiguousarray")(x)

    shim = SimpleNamespace(
        **{name: by_numpy(name) for name in ("arange", "asarray", "broadcast_to")},
        ascontiguousarray=contiguous,
        argsort=by_numpy("argsort", kind="stable"),  # as CuPy's
        cuda=SimpleNamespace(runtime=SimpleNamespace(getDevice=lambda: 0)),
        ndarray=_optional.cupy().ndarray,
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cuda.CudaLoops, "kernel", host_kernels(folder))
        patch.setattr(cuda.BACKEND, "count", lambda: 1)
        patch.setattr(cuda, "require", lambda: None)
        patch.setattr(cuda.cuda_operands, "ordered", no_order)
        patch.setattr(grids.CudaGrids, "ordered", staticmethod(no_order))
        patch.setattr(cuda_operands.Array, "cupy", copied)
        patch.setattr(cuda_methods, "_optional", SimpleNamespace(cupy=lambda: shim))
        patch.setattr(_optional.cupy().cuda.runtime, "getDevice", lambda: 0)
        patch.setattr(_optional.cupy().cuda.runtime, "setDevice", lambda _: None)
        patch.setattr(cuda_launches, "_kernel", cache(lambda p, _: made.moves(p)))
        patch.setattr(cuda_launches.launch, "capability", lambda _: (9, 0))
        made.connect(array_maker())
        with _optional.cupy().cuda.using_allocator(allocate):
            yield made
        cuda_launches._launch.cache_clear()
        dispatch.planned.clear()
        native.calls.connect(0, 0, 0, 0, None, None, None, False)


@pytest.fixture
def cupy_library(gpu, monkeypatch):
    """Have the facade serve CuPy's arrays by kernels alone, else by NotImplemented."""
    for name in ("libraries", "_by_name", "launches"):
        monkeypatch.setattr(dispatch, name, dict(getattr(dispatch, name)))
    for module in (elementwise, searching, facade_cuda):
        monkeypatch.setattr(module, "launches", dispatch.launches)
    for module in (facade_cuda, cuda_searching):
        monkeypatch.setattr(module, "quick", lambda function, _: function)
    monkeypatch.setattr(cuda_searching, "last", lambda x: int(gpu.host(x)[-1]))
    facade_cuda.library.cache_clear()
    yield
    facade_cuda.library.cache_clear()


@pytest.fixture(params=[-1000, 10**9])
def sizes(request, monkeypatch):
    """All that the facade copies is large, or nothing is."""
    for module in (cuda_copies, cuda_launches, cuda_libraries):
        monkeypatch.setattr(module, "LARGE", request.param)
    dispatch.planned.clear()
    yield
    dispatch.planned.clear()


ORDERED = cuda_operands.ordered


@pytest.fixture
def order(gpu, monkeypatch):
    """What orders streams, or waits, each with the number of launches before."""
    log, cuda, before = [], _optional.cupy().cuda, gpu.launches

    def note(*words):
        log.append((*words, gpu.launches - before))

    stream = SimpleNamespace(ptr=0, synchronize=lambda: note("wait"))
    monkeypatch.setattr(cuda, "get_current_stream", lambda: stream)
    monkeypatch.setattr(cuda, "Event", lambda **_: SimpleNamespace(ptr=70))
    for name in ("eventRecord", "streamWaitEvent"):
        monkeypatch.setattr(cuda.runtime, name, partial(note, name))
    monkeypatch.setattr(cuda_operands, "ordered", ORDERED)
    return SimpleNamespace(log=log, note=note)


@pytest.fixture
def captured(monkeypatch):
    monkeypatch.setattr(live_streams, "captured", {0})


@pytest.fixture
def jax_array(gpu, order, monkeypatch):
    """JAX's arrays on CUDA, made of NumPy's."""

    class JaxArray:
        def __init__(self, array):
            self.array, self.dtype = array, array.dtype

        def devices(self):
            return [SimpleNamespace(platform="gpu")]

        def block_until_ready(self):
            order.note("ready")

    def straight(x):
        order.note("as it is" if x.flags.c_contiguous else "copied")
        return gpu.array(np.ascontiguousarray(gpu.host(x)))

    cupy, kind = _optional.cupy(), SimpleNamespace(Tracer=int)
    dlpack = SimpleNamespace(from_dlpack=lambda x: order.note("imported") or x)
    library = SimpleNamespace(core=kind, dlpack=dlpack)
    library.device_put = lambda x, _, may_alias: JaxArray(x)  # noqa: ARG005
    monkeypatch.setattr(_optional, "jax", lambda: library)
    places = SimpleNamespace(place=lambda _: ("cuda", 0))
    monkeypatch.setattr(foreign, "natives", lambda _: places)
    monkeypatch.setattr(cupy.cuda, "Device", nullcontext)
    monkeypatch.setattr(cupy, "from_dlpack", lambda x: order.note("read") or x.array)
    monkeypatch.setattr(cupy, "ascontiguousarray", straight)
    monkeypatch.setitem(foreign._known, JaxArray, foreign.JaxAdapter())
    return lambda x: JaxArray(gpu.array(x))


class Tensor:
    """Another library's array, with a dtype that NumPy does not know."""

    dtype = "tensor.long"

    def __init__(self, array):
        self.array = array


class Tensors:
    """The adapter to it: it is told nothing of streams."""

    mutable = True
    on_cuda = staticmethod(lambda _: True)
    to_native = staticmethod(lambda x, _: x.array)
    stream = staticmethod(lambda _: None)
    begin_write = staticmethod(lambda *_: None)
    from_native = staticmethod(lambda made, _: Tensor(made))


@pytest.fixture
def tensor(monkeypatch):
    """Another library's array, whose adapter is known."""
    monkeypatch.setitem(foreign._known, Tensor, Tensors())
    return Tensor


HOST_KERNEL = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint)


class HostKernel:
    """Stands for a loaded ``@kernel``: it runs for all points of the extents."""

    def __init__(self, grid, narrow):
        reports = np.zeros(8, "q")
        self.narrow, loop = narrow, grids.grid_code.loop(grid)

        def run(memory, blocks):
            words = ctypes.string_at(memory, 8 * grid.words)
            *slow, width, report = struct.unpack_from("4q", words)
            if not report:  # which loops write to
                words = words[:24] + struct.pack("q", reports.ctypes.data) + words[32:]
            assert 0 < blocks <= width
            loop(0, math.prod(slow) * width, words)

        self._run = HOST_KERNEL(run)
        self.handle = address_of(self._run)


@pytest.fixture
def made(gpu, monkeypatch):  # noqa: ARG001
    """Return the kernels that are loaded, compiled for the host."""
    found = []

    def load(*cubin):
        found.append(HostKernel(*cubin))
        return found[-1]

    monkeypatch.setattr(grids.launch, "capability", lambda _: (9, 0))
    monkeypatch.setattr(grids.launch, "Kernel", load)
    code = grids.grid_code
    monkeypatch.setattr(code, "cubin", lambda grid, _, *, narrow: (grid, narrow))
    return found


@pytest.fixture
def only_quick(monkeypatch):
    """Return a function after which the general way of kernels fails."""

    def refuse(*_):
        pytest.fail("the general way was taken")

    return lambda: monkeypatch.setattr(grids.CudaGrids, "on_device", refuse)


@pytest.fixture(scope="module")
def cp():
    return _optional.cupy()


@pytest.fixture
def several_threads(monkeypatch):
    """Four threads, and a cut so low that every call is worth them."""
    monkeypatch.setattr(_config, "num_threads", lambda: 4)
    cuts = {"CUT": 1e-9, "PIECE": 1e-9, "CALL": 0.0, "CALLS": 1, "REST": 0}
    for name, value in cuts.items():
        monkeypatch.setattr(threads, name, value)


@pytest.fixture
def alone(monkeypatch):
    """A pause of a busy machine is no work that threads, and Python, are asked for."""
    monkeypatch.setattr(_config, "num_threads", lambda: 1)


@pytest.fixture(params=[0.0, 3e-6, 1e9])
def kernels_in_threads(request, monkeypatch):
    """Four threads, and every call of a kernel is worth them."""
    monkeypatch.setattr(_config, "num_threads", lambda: 4)
    for name, value in {"LONG": 1e-9, "PIECE": 1e-9, "TELLING": request.param}.items():
        monkeypatch.setattr(threads, name, value)


@pytest.fixture
def debugging(monkeypatch):
    """Act as under XDEV_DEBUG=1, which is read when xdev is imported."""
    monkeypatch.setattr(_config, "debug", lambda: True)


@pytest.fixture
def not_debugging(monkeypatch):
    monkeypatch.setattr(_config, "debug", lambda: False)
