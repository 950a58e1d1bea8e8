"""What generalized ufuncs launch on CUDA, run on the host instead.

A stand-in for the loaded kernel reads the same parameter, and runs the same function
for every point that the launch covers.
"""

import struct
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest

import xdev
from xdev._plain_calls import FORMATS
from xdev.compile.grid import cpu as host_compiler
from xdev.ufunc import cuda, cuda_streams
from xdev.ufunc.cuda_layout import contiguous
from xdev.ufunc.cuda_operands import Array, Number
from xdev.ufunc.generalized import loops as generalized
from xdev.ufunc.kernels import cuda as kernels


class HostKernel:
    """Runs a kernel's function on the host for the points of a launch."""

    def __init__(self, grid, _):
        self._run = host_compiler.loop(grid)
        self._words = grid.words

    def __call__(self, blocks, threads, memory):
        assert len(memory) == 8 * self._words
        assert len(memory) <= 4096
        *slow, width = struct.unpack_from("3q", memory)
        covered = [b * t for b, t in zip(blocks, threads, strict=True)]
        assert covered[0] >= width
        assert (blocks[0] - 1) * threads[0] < width
        assert all(count >= 1 for count in (*blocks, *threads))
        assert max(blocks[1:]) <= 65535
        # Along y and z a thread goes on to further points, so that all are reached.
        self._run(0, width * slow[0] * slow[1], memory)


def launched(kernel, blocks, threads, memory, values, *, first):
    slots = struct.Struct("=" + "".join(FORMATS[x.kind, x.low] for x in values))

    def run(given):
        whole = bytearray(memory)
        slots.pack_into(whole, first, *given)
        kernel(blocks, threads, bytes(whole))

    return run


class HostArray:
    """What the path asks of CuPy's arrays, on NumPy's."""

    def __init__(self, values):
        self.values = values
        self.shape, self.strides, self.dtype = (
            values.shape,
            values.strides,
            values.dtype,
        )
        self.data = SimpleNamespace(ptr=values.__array_interface__["data"][0])

    def astype(self, dtype):
        return HostArray(self.values.astype(dtype))


def read(x, *_):
    if not isinstance(x, np.ndarray):
        return Number(x)
    return Array(x, HostArray(x).data.ptr, x.shape, x.strides, x.dtype)


def view(x):
    """Return the NumPy array behind an Array, whatever its shape and strides."""
    interface = {
        "shape": x.shape,
        "strides": x.strides,
        "typestr": x.dtype.str,
        "data": (x.address, False),
        "version": 3,
    }
    owner = SimpleNamespace(__array_interface__=interface, held=x.owner)
    return HostArray(np.asarray(owner))


def new_array(result):
    made = np.empty(result.shape, result.dtype)
    strides = contiguous(made.shape, made.itemsize)
    return Array(made, HostArray(made).data.ptr, made.shape, strides, made.dtype)


@pytest.fixture
def on_host(monkeypatch):
    runtime = SimpleNamespace(getDevice=lambda: 0)
    cupy = SimpleNamespace(cuda=SimpleNamespace(runtime=runtime))
    monkeypatch.setattr(generalized, "read", read)
    monkeypatch.setattr(generalized._optional, "cupy", lambda: cupy)
    monkeypatch.setattr(generalized.launch, "capability", lambda _: (9, 0))
    monkeypatch.setattr(kernels.compiler, "cubin", lambda grid, _, **__: (grid, ""))
    monkeypatch.setattr(generalized.launch, "Kernel", HostKernel)
    monkeypatch.setattr(kernels, "Launch", launched)
    monkeypatch.setattr(cuda, "require", lambda: None)
    monkeypatch.setattr(cuda, "on_device", lambda *_: nullcontext(0))
    monkeypatch.setattr(cuda, "new_array", new_array)
    monkeypatch.setattr(cuda, "written", read)
    monkeypatch.setattr(cuda_streams, "ordered", lambda _: nullcontext(0))
    monkeypatch.setattr(Array, "cupy", view)


def sample(shape, char="d", seed=0):
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(char)


@xdev.guvectorize("(m,n),(n)->(m)")
def product(a, x, out):
    for i in range(a.shape[0]):
        out[i] = 0
        for k in range(a.shape[1]):
            out[i] += a[i, k] * x[k]


@xdev.guvectorize("(n),()->(),(n)")
def both(x, factor, top, scaled):
    top[0] = x[0]
    for i in range(x.shape[0]):
        top[0] = max(top[0], x[i])
        scaled[i] = factor * x[i]


@pytest.mark.parametrize(
    "shapes",
    [
        ((3, 4), (4,)),
        ((5, 3, 4), (4,)),
        ((5, 1, 3, 4), (6, 4)),
        ((0, 3, 4), (4,)),
        ((2, 1, 3, 3, 4), (1, 7, 1, 4)),
    ],
    ids=str,
)
@pytest.mark.parametrize("order", "CF")
def test_loop_dimensions_and_strides(on_host, shapes, order):  # noqa: ARG001
    a, x = (np.asarray(sample(s, seed=k), order=order) for k, s in enumerate(shapes))

    made = product._cuda((a, x))

    np.testing.assert_array_equal(made, np.matvec(a, x))


def test_outputs_in_place_numbers_by_value_and_casts(on_host):  # noqa: ARG001
    x = sample((6, 5), "f")
    whole = np.full((12, 5), 9, "f")

    top, scaled = both._cuda((x[:, ::-1], 0.5), (None, whole[::2]))

    np.testing.assert_array_equal(top, x.max(-1))
    np.testing.assert_array_equal(whole[::2], x[:, ::-1] / 2)
    np.testing.assert_array_equal(whole[1::2], np.full((6, 5), 9))
    assert scaled.base is whole
    top, scaled = both._cuda((x, np.arange(6)))
    assert top.dtype == np.float64
    np.testing.assert_array_equal(scaled, x * np.arange(6)[:, None])


def test_explicit_types_cast_the_inputs(on_host):  # noqa: ARG001
    made = xdev.guvectorize(
        ["void(float64[:], float64, float64[:], float64[:])"], "(n),()->(),(n)"
    )(both)
    x = sample((4, 3), "h")

    top, scaled = made._cuda((x, np.int8(2)))

    assert top.dtype == scaled.dtype == np.float64
    np.testing.assert_array_equal(scaled, 2.0 * x)


def test_axes_and_kept_dimensions(on_host):  # noqa: ARG001
    @xdev.guvectorize("(n),(n)->()")
    def dot(x, y, out):
        out[0] = 0
        for i in range(x.shape[0]):
            out[0] += x[i] * y[i]

    x, y = sample((4, 5, 6)), sample((4, 5, 6), seed=1)
    for keywords in (
        {"axis": 1},
        {"axis": 0, "keepdims": True},
        {"keepdims": True},
        {"axes": [0, 0, ()]},
    ):
        made = dot._cuda((x, y), **keywords)
        np.testing.assert_array_equal(made, np.vecdot(x, y, **keywords))
    out = np.zeros((4, 1, 6))
    assert dot._cuda((x, y), (out,), axis=1, keepdims=True) is out
    np.testing.assert_array_equal(out, np.vecdot(x, y, axis=1, keepdims=True))
    a, x = sample((3, 4, 5)), sample((5, 4), seed=1)
    axes = [(0, 2), (0,), (0,)]
    np.testing.assert_array_equal(
        product._cuda((a, x), axes=axes), np.matvec(a, x, axes=axes)
    )


def test_an_output_that_overlaps_an_input(on_host):  # noqa: ARG001
    x = sample((4, 6))
    expected = x / 2

    both._cuda((x, 0.5), (None, x[::-1, ::-1]))

    np.testing.assert_array_equal(x[::-1, ::-1], expected)
