"""Which library serves a call, and what is refused."""

import array
import pickle
import types

import array_api_strict
import numpy as np
import pytest

import xdev
from xdev.facade.other import StandardLibrary

STRICT = array_api_strict.asarray([1.0, 2.0, 3.0])
HOST = np.asarray([1.0, 2.0, 3.0])
MATRIX = np.eye(3)
FAKE = ("fake:0", "fake:1")


def on(device, values=(1.0, 2.0, 3.0)):
    return xdev.asarray(list(values), dtype=xdev.float64, device=device)


MIXES = {
    "add": xdev.add,
    "atan2": xdev.atan2,
    "clip": lambda x, y: xdev.clip(x, y, None),
    "concat": lambda x, y: xdev.concat([x, y]),
    "stack": lambda x, y: xdev.stack([x, y]),
    "where": lambda x, y: xdev.where(xdev.greater(x, 0), x, y),
    "isin": xdev.isin,
    "searchsorted": xdev.searchsorted,
    "take": xdev.take,
    "matmul": xdev.matmul,
    "vecdot": xdev.vecdot,
    "linalg.outer": xdev.linalg.outer,
    "linalg.solve": xdev.linalg.solve,
    "meshgrid": xdev.meshgrid,
    "broadcast_arrays": xdev.broadcast_arrays,
    "diff": lambda x, y: xdev.diff(x, append=y),
    "repeat": xdev.repeat,
}


@pytest.mark.parametrize("name", MIXES)
@pytest.mark.parametrize(
    ("x", "y"), [(HOST, STRICT), (STRICT, HOST), (HOST, on("fake")), FAKE]
)
def test_arrays_of_two_libraries_or_devices_are_refused(name, x, y):
    x, y = (on(each) if isinstance(each, str) else each for each in (x, y))

    with pytest.raises(xdev.DeviceMismatchError) as caught:
        MIXES[name](x, y)

    text = str(caught.value)
    assert text.startswith(f"xdev.{name}: ")
    assert str(xdev.device_of(x)) in text
    assert str(xdev.device_of(y)) in text
    assert "xdev.to_device(" in text
    assert isinstance(caught.value, TypeError)
    assert str(pickle.loads(pickle.dumps(caught.value))) == text  # noqa: S301 - ours


def test_the_refusal_names_both_arguments_and_its_advice_works():
    x, y = HOST, on("fake:1")
    with pytest.raises(xdev.DeviceMismatchError) as caught:
        xdev.add(x, y)
    assert "x1 (numpy.ndarray) is on cpu" in str(caught.value)
    assert "x2 (xdev.testing.FakeArray) is on fake:1" in str(caught.value)
    assert "xdev.to_device(x1, 'fake:1')" in str(caught.value)

    moved = xdev.add(xdev.to_device(x, "fake:1"), y)

    assert xdev.device_of(moved) == "fake:1"


@pytest.mark.cuda
def test_host_and_cuda_arrays_are_refused(cuda):
    with pytest.raises(
        xdev.DeviceMismatchError, match=r"x1 \(numpy.ndarray\) is on cpu"
    ):
        xdev.add(HOST, on(cuda))
    with pytest.raises(xdev.DeviceMismatchError, match="out"):
        xdev.add(on(cuda), 1, out=np.empty(3))


def test_out_of_another_library_is_refused():
    with pytest.raises(xdev.DeviceMismatchError, match=r"out \(array_api_strict"):
        xdev.add(HOST, HOST, out=STRICT)
    with pytest.raises(xdev.DeviceMismatchError, match=r"out \(numpy.ndarray\)"):
        xdev.sin(STRICT, out=HOST)


@pytest.mark.parametrize("library", ["host", "fake"])
@pytest.mark.parametrize("shape", [(2,), (4,), (1, 3), (2, 3), ()])
def test_out_of_another_shape_is_refused_before_it_is_written(library, shape):
    place = "cpu" if library == "host" else "fake"
    x, out = on(place), xdev.full(shape, 7.0, device=place)
    for call in (
        lambda: xdev.add(x, x, out=out),
        lambda: xdev.add(1.0, x, out=out),
        lambda: xdev.sin(x, out=out),
        lambda: xdev.tanh(x, out=out),
        lambda: xdev.clip(x, 0, 1, out=out),
    ):
        with pytest.raises(ValueError, match=r"xdev\.empty\(\(3,\), dtype=xdev.float"):
            call()
    assert xdev.all(xdev.equal(out, 7.0))


def test_out_of_another_shape_is_refused_on_every_device(device):
    x, out = on(device), xdev.full((2, 3), 7.0, device=device)
    with pytest.raises(ValueError, match=r"out is of shape \(2, 3\)"):
        xdev.add(x, x, out=out)
    assert xdev.all(xdev.equal(out, 7.0))


@pytest.mark.parametrize("name", ["add", "divide", "sin", "tanh", "round", "expm1"])
def test_out_that_cannot_hold_the_result_is_refused(device, name):
    x = on(device)
    out = xdev.full(3, 7, dtype=xdev.int32, device=device)
    args = (x, x) if name in ("add", "divide") else (x,)

    with pytest.raises(TypeError, match=r"of data type int32.*float64"):
        getattr(xdev, name)(*args, out=out)

    assert xdev.all(xdev.equal(out, 7))


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


@pytest.mark.parametrize("out", [[0, 0, 0], 3, np.float64(1)])
def test_out_that_is_no_array_is_refused(out):
    with pytest.raises(TypeError, match="out is not an array"):
        xdev.add(HOST, HOST, out=out)


@pytest.mark.parametrize("kind", [np.float64, np.ndarray, int])
@pytest.mark.parametrize("device", ["cpu", "fake"])
def test_a_class_is_no_array(kind, device):
    text = f"is not an array but the class {kind.__name__}: pass an object of it$"
    for dtype in (None, np.float32):
        with pytest.raises(TypeError, match=f"asarray: obj {text}"):
            xdev.asarray(kind, dtype=dtype, device=device)
    with pytest.raises(TypeError, match=f"sum: x {text}"):
        xdev.sum(kind)


@pytest.mark.parametrize("device", ["cpu", "fake"])
def test_a_sparse_matrix_is_no_array(device):
    sparse = pytest.importorskip("scipy.sparse").csr_array(np.eye(3))
    text = r"scipy.*pass obj\.toarray\(\), or .* with xdev\.adapt\(device, obj\)$"
    for dtype in (None, np.float32):
        with pytest.raises(TypeError, match=rf"obj is not an array but {text}"):
            xdev.asarray(sparse, dtype=dtype, device=device)
    assert xdev.asarray(sparse.toarray(), device=device).shape == (3, 3)


@pytest.mark.parametrize("x", [[1, 2], (1, 2), "abc", None, object()])
def test_what_is_no_array_is_refused_by_name(x):
    with pytest.raises(TypeError, match=r"xdev\.sum: x is not an array.*xdev.asarray"):
        xdev.sum(x)
    with pytest.raises(TypeError, match=r"xdev\.add: "):
        xdev.add(x, x)


@pytest.mark.parametrize(
    "x", [np.datetime64("2020-01-01"), np.str_("a"), np.void(b"ab"), np.bytes_(b"a")]
)
def test_a_scalar_of_numpys_that_is_no_number_is_told_what_takes_it(x):
    for call in (xdev.asarray, xdev.sum):
        with pytest.raises(TypeError, match=r"an array but .*make one with numpy\.as"):
            call(x, **({"device": "cpu"} if call is xdev.asarray else {}))
    made = xdev.asarray(np.asarray(x), device="cpu")
    assert made.shape == ()
    assert made[()] == x


def test_numbers_alone_name_no_device():
    with pytest.raises(TypeError, match="none of x1, x2 is an array"):
        xdev.add(1, 2.0)
    with pytest.raises(TypeError, match="x is"):
        xdev.sin(1.0)


@pytest.mark.parametrize("number", [2, 2.0, np.float64(2), np.asarray(2.0)])
@pytest.mark.parametrize("place", FAKE)
def test_host_numbers_go_anywhere(number, place):
    x = on(place)

    for result in (xdev.add(x, number), xdev.add(number, x), xdev.clip(x, 0, number)):
        assert xdev.device_of(result) == place
    assert xdev.to_numpy(xdev.multiply(number, x)).tolist() == [2, 4, 6]
    assert xdev.to_numpy(xdev.where(xdev.greater(x, 1), x, number)).tolist() == [
        2,
        2,
        3,
    ]


def test_host_scalars_stay_arrays_of_the_host():
    assert xdev.sum(HOST) == 6
    assert xdev.sqrt(xdev.sum(HOST)) == np.sqrt(6.0)
    assert xdev.add(np.float32(1), np.float32(2)).dtype == np.float32
    assert xdev.sum(np.float64(3)) == 3


def test_subclasses_of_numpys_arrays_are_served(tmp_path):
    mapped = np.memmap(tmp_path / "x", dtype=np.float64, shape=3, mode="w+")
    mapped[:] = 2

    assert xdev.sum(xdev.add(mapped, HOST)) == 12
    assert xdev.device_of(mapped) == "cpu"


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


def test_buffers_become_arrays():
    assert xdev.asarray(array.array("d", [1, 2]), device="cpu").tolist() == [1, 2]
    assert xdev.asarray(memoryview(b"\x01\x02"), device="cpu").tolist() == [1, 2]


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
    library.several = True
    for path in {call.path for call in calls}:
        library.functions[path] = lambda: like.device.current

        assert library.bound(path, like)() is True
        assert like.device.current is False
    assert library.device(like) == 1


def test_with_several_gpus_results_types_are_asked_beside_out():
    pytest.importorskip("cupy")
    from xdev.facade.cuda import CuPyLibrary

    gpu, current = Gpu(), []
    library = CuPyLibrary()
    library.several = True
    library.namespace = types.SimpleNamespace(
        empty=lambda size, dtype: (current.append(gpu.current), np.empty(size, dtype))[
            1
        ]
    )

    out = types.SimpleNamespace(device=gpu)
    wanted = library.wanted("add", np.add, [np.ones(3), np.ones(3, np.float32)], out)

    assert wanted == np.float64
    assert current == [True, True]
