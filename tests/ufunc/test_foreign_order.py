"""The order between CUDA work and other libraries', with stand-ins for both."""

import numpy as np
import pytest
from stand_ins import Exporter


def test_a_librarys_stream_is_ordered_and_the_host_does_not_wait(gpu, order):
    x = np.arange(6.0)

    made = gpu.ufunc("add")(Exporter(x, stream=8), gpu.array(x))

    np.testing.assert_array_equal(gpu.host(made), x + x)
    assert order.log == [
        ("eventRecord", 70, 8, 0),
        ("streamWaitEvent", 0, 70, 0),
        ("eventRecord", 70, 0, 1),
        ("streamWaitEvent", 8, 70, 1),
    ]


@pytest.mark.usefixtures("captured")
def test_a_capture_is_no_part_of_the_order(gpu, order):
    x = np.arange(6.0)
    gpu.ufunc("add")(Exporter(x, stream=8), 1.0)
    assert order.log == []


def test_a_library_without_a_stream_gets_its_array_back_when_all_is_done(
    gpu, order, tensor
):
    x = gpu.array(np.arange(6.0))
    gpu.ufunc("add")(tensor(x), x)
    assert order.log == [("wait", 1)]


@pytest.mark.parametrize("memory", ["C", "F"])
@pytest.mark.parametrize("shape", [(1,), (3, 4)])
def test_jax_arrays_are_ready_when_they_are_read_and_results_when_jax_sees_them(
    gpu, order, jax_array, memory, shape
):
    x = gpu.sample(shape, "f").astype("f", memory)

    made = gpu.ufunc("add")(jax_array(x), 2.0)

    assert type(made) is type(jax_array(x))
    assert made.array.flags.c_contiguous
    np.testing.assert_array_equal(gpu.host(made.array), x + 2, strict=True)
    copied = "copied" if memory == "F" and shape == (3, 4) else "as it is"
    after = [copied, "wait", "imported", "wait"]
    assert order.log == [("ready", 0), ("read", 0), *((word, 1) for word in after)]


@pytest.mark.usefixtures("captured")
def test_jax_arrays_are_no_part_of_a_capture(gpu, order, jax_array):
    with pytest.raises(TypeError, match="no part in the order"):
        gpu.ufunc("add")(jax_array(np.ones(3)), 1.0)
    assert order.log == []
