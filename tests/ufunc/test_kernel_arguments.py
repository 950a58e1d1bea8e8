"""What kernels take: arguments by place, and outputs that may be written."""

import numpy as np
import pytest

import xdev


@xdev.kernel
def add(i, x, y, out):
    out[i] = x[i] + y[i]


def there(device, *arrays):
    return [xdev.asarray(x, device=device) for x in arrays]


@pytest.mark.parametrize("named", [("out",), ("x", "out"), ("nowhere",)], ids=str)
def test_arguments_go_by_place(device, named):
    x, out = there(device, np.ones(3), np.zeros(3))
    given = dict.fromkeys(named, out)

    with pytest.raises(TypeError, match=r"positionally, .* add\[…\]\(x, y, out\)"):
        add[3](x, x, **given)
    with pytest.raises(TypeError, match=r"say for how many points it runs"):
        add(x, x, **given)
    assert not xdev.to_numpy(out).any()


@xdev.kernel
def counted(i, x, out):
    xdev.atomic.add(out, i, x[i])


@xdev.kernel
def swapped(i, x, out):
    xdev.atomic.cas(out, i, x[i], x[i])


@xdev.kernel
def sliced(i, x, out):
    same = out
    same[i : i + 1] = x[i]


@pytest.mark.parametrize("kernel", [counted, swapped, sliced], ids=repr)
def test_a_write_into_a_read_only_array_is_refused_by_name(kernel):
    x, out = np.ones(3, "i4"), np.zeros(3, "i4")
    out.flags.writeable = False
    for _ in range(2):
        with pytest.raises(ValueError, match=r"(?s)out is read-only.*a copy.*x\[i\]"):
            kernel[3](x, out)
    assert not out.any()


def test_read_only_arrays_are_read(device):
    x, out = np.ones(3), np.zeros(3)
    x.flags.writeable = False
    there_x, there_out = there(device, x, out)

    add[3](there_x, there_x, there_out)

    assert xdev.to_numpy(there_out).tolist() == [2, 2, 2]


@pytest.mark.parametrize("place", ["cpu", pytest.param("gpu", marks=pytest.mark.cuda)])
def test_jax_arrays_are_no_outputs(place, request):
    jax = pytest.importorskip("jax")
    if place == "gpu":
        request.getfixturevalue("cuda")
    (first, *_) = jax.devices(place)
    x, out = (jax.device_put(np.full(3, k), first) for k in (1.0, 0.0))

    with pytest.raises(ValueError, match=r": out is read-only .as JAX's"):
        add[3](x, x, out)
    assert not np.asarray(out).any()
