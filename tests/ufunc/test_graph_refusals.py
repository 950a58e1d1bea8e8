"""What graphs refuse: work that cannot be captured, results that cannot be kept."""

import gc
import pickle

import numpy as np
import pytest
from chains import arrays, chain, step, values

import xdev
from xdev.errors import CaptureError


@pytest.mark.parametrize("result", [3.5, "text", {"n": object()}])
def test_results_that_a_replay_cannot_write_are_refused(device, result):
    x, _ = arrays(device)

    def f(x):
        step(x, x)
        return result

    with pytest.raises(CaptureError, match=r"f returns \w+, which a replay cannot"):
        xdev.graph(f, x)()


def test_results_of_another_form_are_refused():
    x = np.arange(4)
    g = xdev.graph(lambda x: x[x > 1], x)
    assert g().tolist() == [2, 3]
    x[...] = 5

    with pytest.raises(CaptureError, match="keep their shapes"):
        g()


def test_wrong_arguments(device):
    x, _ = arrays(device)

    with pytest.raises(TypeError, match="of a function, not of"):
        xdev.graph(x)
    with pytest.raises(xdev.DeviceMismatchError, match="move one"):
        xdev.graph(step, x, xdev.ones(3, device="fake:1"))
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(xdev.graph(chain, x, x))
    assert "graph of chain" in repr(xdev.graph(chain, x, x))


def test_a_freed_argument_is_refused(device):
    x, y = (xdev.zeros(100_000, device=device) for _ in range(2))
    alone = xdev.graph(step, x, y)
    held = xdev.graph(lambda d: d["y"][0] + 1, {"y": [y]})
    outer = xdev.graph(lambda x: (alone(), x + 1)[1], x)
    graphs = {alone: "step", held: "<lambda>", outer: "step"}
    for g in graphs:
        g()

    xdev.memory.free(y)
    words = r"the graph of {}: an argument of shape \(100000,\) was freed"
    for g, name in graphs.items():
        with pytest.raises(xdev.UseAfterFreeError, match=words.format(name)):
            g()
    assert not xdev.any(x)
    with pytest.raises(xdev.UseAfterFreeError):
        xdev.graph(step, x, y)()


@pytest.mark.parametrize("device", ["cpu", "fake"])
def test_a_replay_refuses_to_write_to_a_result_that_was_freed_since(device):
    x = xdev.zeros(100_000, device=device)
    calls = []
    g = xdev.graph(lambda x: (calls.append(1), xdev.ones_like(x))[1], x)
    xdev.memory.free(g())

    with pytest.raises(xdev.UseAfterFreeError, match=r"the graph of .*: a result of"):
        g()
    assert calls == [1]


def reads(x):
    return float(x[0])


def prints(x):
    print(x)  # noqa: T201 - what is refused


def branches(x):
    return step(x, x) if x.any() else x


def downloads(x):
    return xdev.to_numpy(x)


def waits(x):
    made = step(x, x)
    xdev.synchronize(xdev.device_of(x))
    return made


def waits_for_stream(x):
    xdev.current_stream(xdev.device_of(x)).synchronize()


def asks(x):
    made = step(x, x)
    print(xdev.current_stream(xdev.device_of(x)).done)  # noqa: T201
    return made


def allocates(x):
    import cupy

    memory = cupy.cuda.Memory(x.nbytes)
    step(x, x, out=cupy.ndarray(x.shape, "f4", cupy.cuda.MemoryPointer(memory, 0)))


def allocates_by_numba(x):
    from numba import cuda

    step(x, x, out=cuda.device_array(x.shape, x.dtype))


def acquires(x):
    return xdev.memory.pool(xdev.device_of(x)).acquire(4096)


def uploads(x):
    return step(x, xdev.asarray(values(3), device=xdev.device_of(x)))


def multiplies(x):
    x = xdev.reshape(x, (20, 50))  # of vectors it is a kernel, which can be captured
    return xdev.matmul(x, x.T)


@pytest.mark.cuda
@pytest.mark.parametrize(
    ("f", "offset"),
    [
        (reads, 1),
        (prints, 1),
        (branches, 1),
        (downloads, 1),
        (waits, 2),
        (waits_for_stream, 1),
        (asks, 2),
        (allocates, 3),
        (allocates_by_numba, 3),
        (acquires, 1),
        (uploads, 1),
        (multiplies, 2),
    ],
)
def test_what_cannot_be_captured_is_named_and_leaves_all_as_it_was(cuda, f, offset):
    x, y = arrays(cuda)
    step(x, y)
    gc.collect()
    before = xdev.memory.allocated(cuda)
    here = xdev.current_stream(cuda)

    with pytest.raises(CaptureError) as error:
        xdev.graph(f, x)

    line = f"{__file__}:{f.__code__.co_firstlineno + offset}, `"
    assert f"{f.__name__} cannot be captured: {line}" in str(error.value)
    del error
    gc.collect()
    assert xdev.memory.allocated(cuda) == before
    assert xdev.current_stream(cuda) == here
    np.testing.assert_array_equal(
        xdev.to_numpy(xdev.graph(chain, x, y)()), xdev.to_numpy(chain(x, y))
    )


@pytest.mark.cuda
def test_work_of_another_stream_that_does_not_come_back_is_refused(cuda):
    x, _ = arrays(cuda)

    def forks(x):
        event = xdev.current_stream(cuda).record()
        with xdev.Stream(cuda) as other:
            other.wait(event)
            return step(x, x)

    with pytest.raises(CaptureError, match=r"forks cannot be captured: .*Unjoined"):
        xdev.graph(forks, x)


@pytest.mark.cuda
def test_a_graph_cannot_be_made_in_a_capture(cuda):
    x, y = arrays(cuda)

    with pytest.raises(CaptureError, match="while another is captured"):
        xdev.graph(lambda x: xdev.graph(chain, x, y)(), x)


@pytest.mark.cuda
def test_jax_arrays_are_refused_in_a_capture(cuda):
    jax = pytest.importorskip("jax")
    x, _ = arrays(cuda)
    try:
        (where, *_) = jax.local_devices(backend="gpu")
    except RuntimeError:
        pytest.skip("this JAX has no CUDA")
    y = jax.device_put(values(1), where)

    with pytest.raises(CaptureError, match="no part in the order of JAX's work"):
        xdev.graph(lambda x: step(x, y), x)
