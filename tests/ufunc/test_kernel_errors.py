"""Wrong kernels and wrong calls are refused in clear words, and write nothing."""

import re

import numpy as np
import pytest

import xdev
from xdev import _config


@xdev.kernel
def add(i, x, y, out):
    out[i] = x[i] + y[i]


@xdev.kernel
def plane(i, j, x):
    x[i, j] = i + j


def there(device, *arrays):
    return [xdev.asarray(x, device=device) for x in arrays]


@pytest.mark.parametrize(
    "key",
    [
        -1,
        (3, -1),
        (1, 2, 3, 4),
        (),
        ((4,), 0),
        ((4,), 2048),
        ((4,), (2, 2)),
        ((4, 4), 16),
        ((4, 4, 4), (128, 1, 1)),
        ((4,), 16, 2),
        (2**40, 2**40),
    ],
    ids=str,
)
def test_wrong_extents_are_refused(key):
    with pytest.raises(ValueError, match=r"^add\["):
        add[key]


@pytest.mark.parametrize("key", [1.5, "n", None, (3, 2.0), ((3,), 1.0)], ids=str)
def test_extents_are_integers(key):
    with pytest.raises(TypeError, match="must be integers"):
        add[key]


def test_extents_may_be_numpys_integers(device):
    x, out = there(device, np.arange(4), np.zeros(4, np.int64))

    add[np.int32(4)](x, x, out)

    assert xdev.to_numpy(out).tolist() == [0, 2, 4, 6]


def test_a_call_needs_extents():
    with pytest.raises(TypeError, match=r"say for how many points it runs, add\[n\]"):
        add(np.zeros(3), np.zeros(3), np.zeros(3))


@pytest.mark.parametrize(
    ("key", "count"), [(3, 2), (3, 4), ((3, 3), 3), ((1, 1, 1), 2)]
)
def test_a_wrong_number_of_arguments_is_refused(device, key, count):
    arrays = there(device, *np.zeros((count, 3)))

    with pytest.raises(TypeError, match=r"add\(i, x, y, out\) of . ind.* takes"):
        add[key](*arrays)


def test_a_mask_is_refused_with_what_to_pass():
    x, out = np.ma.masked_less(np.arange(3), 1), np.zeros(3)

    with pytest.raises(TypeError, match=r"MaskedArray: pass x\.filled\(value\)"):
        add[3](x, x, out)


@pytest.mark.parametrize(
    "wrong", ["text", None, object(), {}], ids=["str", "None", "object", "dict"]
)
def test_what_is_no_array_is_refused(device, wrong):
    x, out = there(device, np.zeros(3), np.zeros(3))

    with pytest.raises(TypeError, match=r"takes .*arrays and numbers, not|y is not"):
        add[3](x, wrong, out)


def test_lists_are_refused():
    with pytest.raises(TypeError, match=r"builtins.list: pass xdev.asarray"):
        add[3]([1, 2, 3], np.zeros(3), np.zeros(3))


def test_a_kernel_of_numbers_alone_is_refused():
    with pytest.raises(TypeError, match="got no array"):
        add[3](1, 2, 3)


@pytest.mark.parametrize("dtype", ["f2", ">f4", "O", "M8[s]", "U3", "f4,i4"])
def test_dtypes_that_kernels_do_not_have_are_refused(dtype):
    x, out = np.zeros(3, dtype), np.zeros(3)

    with pytest.raises(
        TypeError, match=r"add: x has dtype .*which kernels do not have"
    ):
        add[3](x, x, out)


def test_an_array_that_is_not_aligned_is_refused():
    x = np.zeros(25, np.uint8)[1:].view(np.float64)

    with pytest.raises(ValueError, match="x is not aligned"):
        add[3](x, x, np.zeros(3))


def test_an_int_too_large_is_refused(device):
    @xdev.kernel
    def fill(i, value, out):
        out[i] = value

    out = xdev.zeros(3, device=device)

    with pytest.raises(OverflowError):
        fill[3](2**70, out)


def test_devices_do_not_mix(device):
    x = xdev.zeros(3, device=device)
    if device == "cpu":
        pytest.skip("both are the host's")

    with pytest.raises(xdev.DeviceMismatchError, match=r"add.*to_device"):
        add[3](x, np.zeros(3), x)


def test_arrays_that_were_freed_are_refused():
    x = xdev.zeros(100_000)
    out = np.zeros(3)
    xdev.memory.free(x)

    with pytest.raises(xdev.UseAfterFreeError):
        add[3](x, out, out)


def test_a_function_that_cannot_be_compiled_shows_types_and_line(device):
    @xdev.kernel
    def broken(i, x, out):
        out[i] = x[i]
        out[i] = x[i].nothing_like_that

    x, out = there(device, np.zeros(3, np.float32), np.ones(3))

    with pytest.raises(TypeError) as caught:
        broken[3](x, out)

    text = str(caught.value)
    assert text.startswith("cannot compile broken(float32[:], float64[:])")
    assert re.search(r"test_kernel_errors.py:\d+: out\[i\] = x\[i\].nothing_like", text)
    assert xdev.to_numpy(out).tolist() == [1, 1, 1]


def test_a_kernel_returns_nothing(device):
    @xdev.kernel
    def returning(i, x):
        return x[i]

    with pytest.raises(TypeError, match=r"returns float64.*goes to its arrays"):
        returning[3](xdev.zeros(3, device=device))


def test_arrays_from_outside_are_refused(device):
    table = xdev.zeros(3, device=device)
    host = np.zeros(3)

    @xdev.kernel
    def reading(i, out):
        out[i] = host[i] if table is None else 0

    with pytest.raises(TypeError, match=r"reads the array '(host|table)' from outside"):
        reading[3](table)


def test_functions_that_call_themselves_are_refused(device):
    def factorial(n):
        return 1 if n < 2 else n * factorial(n - 1)

    @xdev.kernel
    def recursive(i, out):
        out[i] = factorial(i)

    with pytest.raises(TypeError, match="factorial calls itself"):
        recursive[3](xdev.zeros(3, device=device))


def with_default(i, x=1):
    x[i] = 0


def with_many(i, *args):
    args[0][i] = 0


def with_raise(i, x):
    raise ValueError(x[i])


@pytest.mark.parametrize(
    "function", [with_default, with_many, with_raise, len, 3, lambda i: i]
)
def test_wrong_functions_are_refused(function):
    with pytest.raises(
        TypeError, match=r"kernel needs a Python function|raises, which"
    ):
        xdev.kernel(function)


@pytest.fixture
def debugging(monkeypatch):
    monkeypatch.setattr(_config, "debug", lambda: True)


@pytest.mark.usefixtures("debugging")
def test_debug_mode_names_kernel_array_index_and_point(device):
    @xdev.kernel
    def shifted(i, x, out):
        out[i] = x[i + 2]

    x, out = there(device, np.arange(5.0), np.zeros(5))

    shifted[3](x, out)
    assert xdev.to_numpy(out).tolist() == [2, 3, 4, 0, 0]
    with pytest.raises(IndexError) as caught:
        shifted[4](x, out)

    expected = "shifted: x has 5 elements along axis 0, and the index there is 5, at "
    assert str(caught.value) == expected + "point (3)"


@xdev.kernel
def both_axes(i, j, x, out):
    out[0] = x[i, j]


@xdev.kernel
def from_the_end(i, x, out):
    out[0] = x[-i - 1, 0]


@xdev.kernel
def beside_a_slice(i, x, out):
    out[0] = x[:, i][0]


@xdev.kernel
def whole_row(i, x, out):
    out[0] = x[i][0]


@xdev.kernel
def by_a_tuple(i, x, out):
    place = i, 0
    out[0] = x[place]


@xdev.kernel
def updating(i, x, out):
    xdev.atomic.add(x, (0, i), 1.0)
    out[0] += 1


@pytest.mark.usefixtures("debugging")
@pytest.mark.parametrize(
    ("kernel", "extents", "axis", "index"),
    [
        (both_axes, (3, 5), 1, 4),
        (from_the_end, 4, 0, -4),
        (beside_a_slice, 5, 1, 4),
        (whole_row, 4, 0, 3),
        (by_a_tuple, 4, 0, 3),
        (updating, 5, 1, 4),
    ],
)
def test_debug_mode_sees_every_kind_of_index(device, kernel, extents, axis, index):
    x, out = there(device, np.zeros((3, 4)), np.zeros(1))

    with pytest.raises(IndexError, match=f"x has . .* axis {axis}, .* is {index}, at"):
        kernel[extents](x, out)


def test_a_fake_device_checks_bounds_always():
    x, out = there("fake", np.arange(5), np.zeros(5, np.int64))
    with pytest.raises(IndexError, match=r"x has 5 elements .* is 5, at point \(5\)"):
        add[6](x, x, out)


def test_too_few_extents_are_told_by_the_arguments():
    x = np.zeros((2, 2))
    with pytest.raises(TypeError, match=r"for 1 give it the extents plane\[h, w\]"):
        plane[2](x)


@pytest.mark.usefixtures("debugging")
def test_debug_mode_says_where_it_checks_nothing():
    known = {}
    exec("def copied(i, x, out):\n    out[i] = x[i]", known)  # noqa: S102
    out = np.zeros(3)

    with pytest.warns(RuntimeWarning, match="copied: no source, so that no bounds"):
        xdev.kernel(known["copied"])[3](np.ones(3), out)

    assert out.tolist() == [1, 1, 1]


def test_fake_devices_say_so_too_at_the_callers_line():
    known = {}
    exec("def copied(i, x, out):\n    out[i] = x[i]", known)  # noqa: S102
    x, out = (xdev.ones(3, device="fake") for _ in range(2))
    with pytest.warns(RuntimeWarning, match="copied: no source") as told:
        xdev.kernel(known["copied"])[3](x, out)
    assert told[0].filename == __file__


@pytest.mark.usefixtures("debugging")
def test_an_arguments_other_name_is_checked():
    @xdev.kernel
    def renamed(i, x, out):
        y = x
        z = y
        out[i] = z[i + 1]

    out = np.zeros(3)
    with pytest.raises(IndexError, match=r"x has 3 elements .* is 3, at point \(2\)"):
        renamed[3](np.ones(3), out)


@pytest.mark.usefixtures("debugging")
def test_debug_mode_changes_no_result(device):
    @xdev.kernel
    def mixed(i, x, out):
        out[i] = x[-1 - i] * 0.1 + x[i]

    x = np.random.default_rng(0).random(1000, dtype=np.float32)
    given, out = there(device, x, np.zeros_like(x))

    mixed[1000](given, out)

    expected = x[::-1] * np.float32(0.1) + x
    np.testing.assert_array_equal(xdev.to_numpy(out), expected)


@pytest.mark.usefixtures("debugging")
def test_an_empty_array_has_no_index(device):
    x, out = there(device, np.zeros((0, 4)), np.zeros(1))

    with pytest.raises(IndexError, match="x has 0 elements along axis 0"):
        whole_row[1](x, out)
