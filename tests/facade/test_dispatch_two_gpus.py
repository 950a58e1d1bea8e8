"""Two GPUs: every class of function works where its arrays are, not where CuPy is."""

import numpy as np
import pytest

import xdev

pytestmark = [pytest.mark.cuda, pytest.mark.two_gpus]
X = np.asarray([3.0, 1.0, 2.0])


@pytest.fixture
def cupy(cuda):
    """CuPy, with device 0 current and a second one."""
    import cupy

    assert cuda.type == "cuda"
    if cupy.cuda.runtime.getDeviceCount() < 2:
        pytest.skip("this machine has one GPU")
    with cupy.cuda.Device(0):
        yield cupy
        assert cupy.cuda.runtime.getDevice() == 0, "a call left another device current"


def on(cupy, x, index):
    if isinstance(x, list):
        return [on(cupy, each, index) for each in x]
    if not isinstance(x, np.ndarray):
        return x
    with cupy.cuda.Device(index):
        return cupy.asarray(x)


def results(found):
    return list(found) if isinstance(found, tuple | list) else [found]


def test_every_function_stays_on_its_arrays_gpu(cupy, call):
    for index in (1, 0):
        args = on(cupy, list(call.args), index)
        kw = {name: on(cupy, value, index) for name, value in call.kw.items()}

        for result in results(call.function(*args, **kw)):
            if isinstance(result, cupy.ndarray):
                assert result.device.id == index
                assert result.data.device_id == index


def test_the_bare_name_is_the_current_gpu(cupy):
    for index in (1, 0):
        with cupy.cuda.Device(index):
            assert xdev.Device("cuda").index == index
            assert xdev.zeros(3, device="cuda").device.id == index


def test_out_is_written_where_it_is(cupy):
    x = on(cupy, X, 1)
    for function, args in (
        (xdev.add, (x, 1.0)),
        (xdev.sqrt, (x,)),
        (xdev.real, (x,)),
        (xdev.clip, (x, 1.5, 2.5)),
        (xdev.round, (x,)),
    ):
        out = xdev.zeros_like(x)
        assert function(*args, out=out) is out
        host = [xdev.to_numpy(a) if a is x else a for a in args]
        np.testing.assert_allclose(xdev.to_numpy(out), function(*host))
    for wrong, error in (
        (xdev.zeros(2, device="cuda:1"), ValueError),
        (xdev.zeros(3, dtype=xdev.int32, device="cuda:1"), TypeError),
        (xdev.zeros(3, device="cuda:0"), xdev.DeviceMismatchError),
    ):
        with pytest.raises(error, match="out"):
            xdev.add(x, 1.0, out=wrong)
