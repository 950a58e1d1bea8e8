"""Which library serves a call, and what is refused."""

import array

import array_api_strict
import numpy as np
import pytest
from running import locked

import xdev

STRICT = array_api_strict.asarray([1.0, 2.0, 3.0])
HOST = np.asarray([1.0, 2.0, 3.0])


def test_read_only_out_is_refused():
    out = locked(np.full(3, 7.0))
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
    assert xdev.namespace(xdev.Device("fake:1")) is xdev.namespace(
        xdev.ones(3, device="fake")
    )
    assert xdev.namespace(STRICT) is array_api_strict
    with pytest.raises(TypeError, match="x_or_device"):
        xdev.namespace(3)
    with pytest.raises(xdev.ConfigurationError):
        xdev.namespace("tpu")
