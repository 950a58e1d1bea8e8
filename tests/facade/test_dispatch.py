"""Which library serves a call, and what is refused."""

import array
import types

import array_api_strict
import numpy as np
import pytest

import xdev
from xdev.facade.other import StandardLibrary

STRICT = array_api_strict.asarray([1.0, 2.0, 3.0])
HOST = np.asarray([1.0, 2.0, 3.0])


def on(device, values=(1.0, 2.0, 3.0)):
    return xdev.asarray(list(values), dtype=xdev.float64, device=device)


def test_out_of_a_narrower_type_of_the_same_kind_is_written(device):
    out = xdev.empty(3, dtype=xdev.float32, device=device)

    assert xdev.add(on(device), 1.0, out=out) is out
    np.testing.assert_array_equal(xdev.to_numpy(out), np.float32([2, 3, 4]))


def test_read_only_out_is_refused():
    out = np.full(3, 7.0)
    out.flags.writeable = False
    for args in ((HOST, HOST), (HOST, 1)):
        with pytest.raises(ValueError, match=r"out is read-only.*xdev\.empty"):
            xdev.add(*args, out=out)
    assert (out == 7).all()


@pytest.mark.parametrize("device", ["cpu", "fake"])
def test_a_sparse_matrix_is_no_array(device):
    sparse = pytest.importorskip("scipy.sparse").csr_array(np.eye(3))
    text = r"scipy.*pass obj\.toarray\(\), or .* with xdev\.adapt\(device, obj\)$"
    for dtype in (None, np.float32):
        with pytest.raises(TypeError, match=rf"obj is not an array but {text}"):
            xdev.asarray(sparse, dtype=dtype, device=device)
    assert xdev.asarray(sparse.toarray(), device=device).shape == (3, 3)


def test_host_scalars_subclasses_and_buffers_are_served(tmp_path):
    assert xdev.sum(HOST) == 6
    assert xdev.sqrt(xdev.sum(HOST)) == np.sqrt(6.0)
    assert xdev.add(np.float32(1), np.float32(2)).dtype == np.float32
    assert xdev.sum(np.float64(3)) == 3
    mapped = np.memmap(tmp_path / "x", dtype=np.float64, shape=3, mode="w+")
    mapped[:] = 2
    assert xdev.sum(xdev.add(mapped, HOST)) == 12
    assert xdev.device_of(mapped) == "cpu"
    for buffer in (array.array("d", [1, 2]), memoryview(b"\x01\x02")):
        assert xdev.asarray(buffer, device="cpu").tolist() == [1, 2]


def test_namespace_is_the_librarys_own():
    assert xdev.namespace(HOST) is xdev.namespace("cpu") is np
    assert xdev.namespace(np.float64(1)) is np
    assert xdev.namespace(xdev.Device("fake:1")) is xdev.namespace(on("fake"))
    assert xdev.namespace(STRICT) is array_api_strict
    with pytest.raises(TypeError, match="x_or_device"):
        xdev.namespace(3)
    with pytest.raises(xdev.ConfigurationError):
        xdev.namespace("tpu")


@pytest.mark.cuda
def test_namespace_of_cuda_is_cupy(cuda):
    assert xdev.namespace(cuda).__name__ == "cupy"
    assert xdev.namespace(xdev.zeros(2, device=cuda)).__name__ == "cupy"


def test_a_function_the_library_lacks_says_so(monkeypatch):
    monkeypatch.delattr(array_api_strict, "tile")
    library = StandardLibrary(array_api_strict)

    with pytest.raises(NotImplementedError, match="array_api_strict has no function"):
        library.bound("tile", STRICT)


def test_cupy_has_every_function_the_facade_asks_it_for():
    pytest.importorskip("cupy")
    from xdev.facade.cuda import library

    names = [name for name in xdev.facade.__all__ if callable(getattr(xdev, name))]
    names += [f"linalg.{name}" for name in xdev.linalg.__all__]
    names += [f"fft.{name}" for name in xdev.fft.__all__]
    own = {"namespace", "__array_namespace_info__"}
    for name in sorted(set(names) - own):
        assert callable(library().bound(name, None)), name


class Gpu:
    """A device that notes when it is current."""

    id = 1
    current = False

    def __enter__(self):
        self.current = True

    def __exit__(self, *exception):
        self.current = False


def test_with_several_gpus_every_cupy_function_runs_on_its_arrays_gpu(
    calls, monkeypatch
):
    pytest.importorskip("cupy")
    from xdev.facade import cuda

    monkeypatch.setattr(cuda, "BACKEND", types.SimpleNamespace(current=lambda: 0))
    library, data = cuda.CuPyLibrary(), types.SimpleNamespace(device_id=1)
    like = types.SimpleNamespace(device=Gpu(), data=data)
    library.multi_device = True
    for path in {call.path for call in calls}:
        library.functions[path] = lambda: like.device.current

        assert library.bound(path, like)() is True
        assert like.device.current is False
    assert library.device(like) == 1
