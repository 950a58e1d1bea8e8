"""What calls queue on a real GPU: one launch, in order with any library's work."""

import importlib
import threading

import numpy as np
import pytest
from cuda_functions import above, add, sample
from stand_ins import Exporter

from xdev import _optional
from xdev.ufunc.foreign import is_cuda

pytestmark = [
    pytest.mark.cuda,
    pytest.mark.usefixtures("cuda"),
    # numba-cuda's own import, under NumPy 2.5:
    pytest.mark.filterwarnings("ignore:The 'generic' unit:DeprecationWarning"),
]


def test_numba_arrays_in_and_out(cp):
    cuda = _optional.numba_cuda()
    x, y = sample(1000, "f"), sample(1000, "f", 1)
    dx, dy = cuda.to_device(x), cuda.to_device(y)
    out = cuda.device_array(1000, np.float32)

    assert add(dx, dy, out) is out
    np.testing.assert_array_equal(out.copy_to_host(), x + y)
    made = add(dx, cp.asarray(y))
    assert type(made) is type(dx)
    np.testing.assert_array_equal(made.copy_to_host(), x + y)
    assert type(add(cp.asarray(y), dx)) is cp.ndarray


def test_foreign_arrays_in_and_out(cp):
    x = cp.asarray(sample((30, 40), "f"))
    out = Exporter(cp.zeros((40, 30), "f").T)

    assert add(Exporter(x), x, out) is out
    np.testing.assert_array_equal(out.array.get(), (x + x).get())
    assert type(add(Exporter(x), 1.0)) is cp.ndarray


def test_torch_tensors_in_and_out():
    torch = pytest.importorskip("torch")
    x = torch.rand(1000, device="cuda")
    out = torch.empty_like(x)

    assert is_cuda(x)
    assert not is_cuda(x.cpu())
    assert add(x, x, out) is out
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
        "contiguous": lambda: add(x, y, o),
        "broadcast": lambda: add(x, y[0], o),
        "zero-d": lambda: add(x, y[0, 0], o),
        "number": lambda: add(x, 2.0, o),
        "numpy scalar": lambda: add(x, np.float32(2), o),
        "strided": lambda: add(x.T, y, o),
        "mask": lambda: add(x, y, o, where=mask),
        "numba": lambda: add(x, y, foreign),
        "cast": lambda: above(x, y, o),
    }
    for name, call in calls.items():
        call()  # compiles
        assert nodes(cp, call) == 1, name


@pytest.mark.parametrize("shape", [(1000,), (1000, 1)])
def test_a_thread_without_a_context_can_call(cp, shape):
    x, flat, strided = cp.ones(shape, "f"), cp.zeros(shape, "f"), cp.zeros(2000, "f")
    add(x, x, flat)
    flat[...] = 0
    cp.cuda.Device().synchronize()

    def work():
        add(x, x, flat)
        add(x.ravel(), 1.0, strided[::2])

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert (flat.get() == 2).all()
    assert (strided[::2].get() == 2).all()


def test_work_goes_to_the_current_stream(cp):
    x, out = cp.ones(1 << 20, "f"), cp.zeros(1 << 20, "f")
    add(x, x, out)
    out[...] = 0
    cp.cuda.Device().synchronize()
    stream = cp.cuda.Stream(non_blocking=True)

    with stream:
        stream.begin_capture()
        add(x, x, out)
        graph = stream.end_capture()

    assert not out.get().any()  # it was captured on that stream, and not run
    graph.launch(stream)
    stream.synchronize()
    assert (out.get() == 2).all()


def test_the_stream_of_a_foreign_array_is_waited_for_and_waits(cp):
    n = 1 << 26
    theirs = cp.cuda.Stream(non_blocking=True)
    x, out = cp.zeros(n, "f"), cp.zeros(n, "f")
    mine, result = Exporter(x, stream=theirs.ptr), Exporter(out, stream=theirs.ptr)
    cp.cuda.Device().synchronize()
    add(mine, 1.0, result)
    cp.cuda.Device().synchronize()
    with theirs:
        for _ in range(50):
            x += 1
    add(mine, 1.0, result)
    with theirs:
        out += 1
        x[...] = 0

    cp.cuda.Device().synchronize()
    assert float(out[0]) == float(out[-1]) == 52


def test_a_read_only_exporter_is_refused_as_out(cp):
    x = cp.ones(3)
    with pytest.raises(ValueError, match="read-only"):
        add(x, x, Exporter(cp.zeros(3), writable=False))
