"""Kernels compute on every device what the same loops compute in NumPy."""

import pickle

import numpy as np
import pytest

import xdev

SHAPES = [(0,), (1,), (7,), (5000,), (3, 5), (0, 4), (4, 0), (70, 90), (2, 3, 4)]


@xdev.kernel
def add(i, x, y, out):
    out[i] = x[i] + y[i]


@xdev.kernel
def saxpy(i, a, x, y, out):
    out[i] = a * x[i] + y[i] * 0.5


@xdev.kernel
def stencil(i, j, x, out):
    out[i + 1, j + 1] = 0.25 * (
        x[i, j + 1] + x[i + 2, j + 1] + x[i + 1, j] + x[i + 1, j + 2]
    )


@xdev.kernel
def number(i, j, k, out):
    out[i, j, k] = i * 10000 + j * 100 + k


def squares(i, x, out):
    out[i] = x[i] * x[i]


def squared(x):
    return x * x


@xdev.vectorize
def clipped(x):
    return min(x, 1.5)


@xdev.kernel
def composed(i, x, out):
    out[i] = clipped(squared(x[i]))


def there(device, *arrays):
    return [xdev.asarray(x, device=device) for x in arrays]


@pytest.mark.parametrize("char", "bHilLfD")
def test_a_kernel_computes_every_element(device, char):
    x = np.arange(5000) % 11
    x = x.astype(char)
    given, out = there(device, x, np.zeros_like(x))

    assert add[x.size](given, given, out) is None

    np.testing.assert_array_equal(xdev.to_numpy(out), x + x)


def test_bools_are_read_and_written(device):
    @xdev.kernel
    def differ(i, x, y, out):
        out[i] = x[i] != y[i]

    x, y = np.arange(9) % 2 == 0, np.arange(9) % 3 == 0
    dx, dy, out = there(device, x, y, np.zeros(9, bool))

    differ[9](dx, dy, out)

    np.testing.assert_array_equal(xdev.to_numpy(out), x != y)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_every_point_is_run_once(device, shape):
    @xdev.kernel
    def one(i, out):
        xdev.atomic.add(out, i, 1)

    @xdev.kernel
    def two(i, j, out):
        xdev.atomic.add(out, (i, j), 1)

    @xdev.kernel
    def three(i, j, k, out):
        xdev.atomic.add(out, (i, j, k), 1)

    (out,) = there(device, np.zeros(shape, np.int64))
    kernel = {1: one, 2: two, 3: three}[len(shape)]

    kernel[shape](out)
    kernel[shape, 32 if len(shape) == 1 else (1,) * (len(shape) - 1) + (5,)](out)

    np.testing.assert_array_equal(xdev.to_numpy(out), np.full(shape, 2))


def test_the_last_index_is_the_fastest(device):
    (out,) = there(device, np.zeros((5, 6, 7), np.int64))

    number[5, 6, 7](out)

    i, j, k = np.indices((5, 6, 7))
    np.testing.assert_array_equal(xdev.to_numpy(out), i * 10000 + j * 100 + k)


@pytest.mark.parametrize("shape", [(3, 70_000), (70_000, 3), (70_000, 1, 2)])
def test_grids_are_longer_than_a_launch_along_any_axis(device, shape):
    @xdev.kernel
    def mark2(i, j, out):
        out[i, j] += 1

    @xdev.kernel
    def mark3(i, j, k, out):
        out[i, j, k] += 1

    (out,) = there(device, np.zeros(shape, np.int32))
    kernel = mark2 if len(shape) == 2 else mark3

    kernel[shape, (1,) * len(shape)](out)

    assert xdev.to_numpy(out).min() == xdev.to_numpy(out).max() == 1


@pytest.mark.parametrize(
    "view", [np.s_[::2], np.s_[::-1], np.s_[1:], np.s_[:0]], ids=str
)
def test_views_of_any_strides_are_read_and_written_in_place(device, view):
    x = np.arange(1000.0)
    given, whole = there(device, x, np.full(1000, -1.0))
    out = whole[view]

    add[x[view].size](given[view], given[view], out)

    expected = np.full(1000, -1.0)
    expected[view] = 2 * x[view]
    np.testing.assert_array_equal(xdev.to_numpy(whole), expected)


def test_arrays_of_several_axes_keep_their_strides(device):
    x = np.random.default_rng(0).random((60, 50))
    (given,) = there(device, x)
    (out,) = there(device, np.zeros((48, 58)))

    stencil[48 - 2, 58 - 2](given.T[:48, :58], out)

    t = x.T[:48, :58]
    inner = 0.25 * (t[:-2, 1:-1] + t[2:, 1:-1] + t[1:-1, :-2] + t[1:-1, 2:])
    np.testing.assert_allclose(xdev.to_numpy(out)[1:-1, 1:-1], inner, rtol=1e-15)
    assert not xdev.to_numpy(out)[[0, -1]].any()


def test_negative_indices_count_from_the_end(device):
    @xdev.kernel
    def reverse(i, x, out):
        out[-i - 1] = x[i]

    x = np.arange(10)
    given, out = there(device, x, np.zeros_like(x))

    reverse[10](given, out)

    np.testing.assert_array_equal(xdev.to_numpy(out), x[::-1])


def test_floats_in_the_function_and_pythons_own_are_weak(device):
    x = np.random.default_rng(1).random(3000, dtype=np.float32)
    given, out = there(device, x, np.zeros_like(x))

    saxpy[3000](1 / 3, given, given, out)

    expected = np.float32(1 / 3) * x + x * np.float32(0.5)
    np.testing.assert_array_equal(xdev.to_numpy(out), expected)


def test_numpy_scalars_keep_their_dtype(device):
    @xdev.kernel
    def scaled(i, a, x, out):
        out[i] = a * x[i]

    x = np.random.default_rng(1).random(100, dtype=np.float32)
    given, out = there(device, x, np.zeros(100))

    scaled[100](np.float64(1 / 3), given, out)

    np.testing.assert_array_equal(xdev.to_numpy(out), 1 / 3 * x.astype(np.float64))


@pytest.mark.parametrize("value", [True, 7, -(2**62), 2.5, 1 - 2j])
def test_numbers_of_each_kind_arrive(device, value):
    @xdev.kernel
    def fill(i, value, out):
        out[i] = value

    dtype = np.result_type(value)
    (out,) = there(device, np.zeros(3, dtype))

    fill[3](value, out)

    assert xdev.to_numpy(out).tolist() == [value] * 3


def test_kernels_call_plain_functions_and_ufuncs(device):
    x = np.linspace(0, 2, 50)
    given, out = there(device, x, np.zeros_like(x))

    composed[50](given, out)

    np.testing.assert_array_equal(xdev.to_numpy(out), np.minimum(x * x, 1.5))


def clamp(i, n):
    return max(0, min(i, n - 1))


@xdev.vectorize
def clamped(i, n):
    return max(0, min(i, n - 1))


@xdev.kernel
def edged(i, x, out):
    out[i] = x[clamp(i - 1, x.shape[0])] + x[clamped(i + 1, x.shape[0])] * 10.0
    for k in range(clamp(i, 2)):
        out[i] += k + 100.0


def test_functions_are_called_in_indices_and_ranges(device):
    x = np.arange(5, dtype=np.float32)
    out = xdev.zeros(5, dtype="float32", device=device)
    edged[5](xdev.asarray(x, device=device), out)
    i = np.arange(5)
    expected = x[np.maximum(i - 1, 0)] + x[np.minimum(i + 1, 4)] * 10
    np.testing.assert_array_equal(xdev.to_numpy(out), expected + 100 * np.minimum(i, 1))


def test_a_kernel_follows_its_types(device):
    for char in "fdlf":
        x = np.arange(20).astype(char)
        given, out = there(device, x, np.zeros_like(x))
        add[20](given, given, out)
        np.testing.assert_array_equal(xdev.to_numpy(out), x + x)


def test_work_that_threads_share_is_complete():
    @xdev.kernel
    def heavy(i, x, out):
        total = 0.0
        for k in range(200):
            total += x[i] * k
        out[i] = total

    x = np.random.default_rng(0).random(100_001)
    out = np.zeros_like(x)

    heavy[x.size](x, out)

    np.testing.assert_allclose(out, x * sum(range(200)), rtol=1e-12)


def test_the_decorator_takes_options_and_kernels():
    again = xdev.kernel(fastmath=True)(add)
    x, out = np.arange(5.0), np.zeros(5)

    again[5](x, x, out)

    assert again.__name__ == "add"
    assert again.__doc__ == add.__doc__
    np.testing.assert_array_equal(out, 2 * x)


def test_kernels_pickle():
    assert pickle.loads(pickle.dumps(add)) is add  # noqa: S301
    again = pickle.loads(pickle.dumps(xdev.kernel(squares)))  # noqa: S301
    x, out = np.arange(4), np.zeros(4, np.int64)

    again[4](x, out)

    assert out.tolist() == [0, 1, 4, 9]


def test_torch_tensors_are_written_in_place():
    torch = pytest.importorskip("torch")
    x, out = torch.arange(5.0), torch.zeros(5)

    add[5](x, x, out)

    assert out.tolist() == [0, 2, 4, 6, 8]
