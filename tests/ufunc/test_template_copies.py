"""The facade's copies of large CUDA arrays, on a stand-in for a GPU."""

import itertools

import numpy as np
import pytest

from xdev.facade import cuda, cuda_copies

VIEWS = [
    lambda x: x,
    lambda x: x.T,
    lambda x: x[::2, ::-1],
    lambda x: x[1:, 1:],
    lambda x: np.broadcast_to(x[:1], x.shape),
]
AXES = range(-2, 2)
CASES = [
    *(("concat", (), {"axis": axis}) for axis in AXES),
    *(("stack", (), {"axis": axis}) for axis in (*AXES, 2, -3)),
    *(("repeat", (k,), {"axis": axis}) for k, axis in itertools.product((0, 3), AXES)),
    *(
        ("roll", (shift,), {"axis": axis})
        for shift, axis in itertools.product((0, 1, -3, 10**9 + 7), AXES)
    ),
    *(("tile", (times,), {}) for times in ((2,), (2, 3), (1, 2, 1, 2), (0, 1), ())),
    *(
        ("cumulative_sum", (), {"axis": axis, "dtype": dtype, "include_initial": more})
        for axis, dtype, more in itertools.product(AXES, (None, "d"), (False, True))
    ),
]
SEQUENCES = {"concat": np.concat, "stack": np.stack}


@pytest.fixture
def copies(monkeypatch):
    """Copies for which everything is large."""
    monkeypatch.setattr(cuda_copies, "LARGE", -1000)
    return cuda_copies


@pytest.mark.parametrize("char", "?He")
def test_elements_go_where_numpy_has_them(gpu, copies, char):
    whole = gpu.sample((7, 50), char) % np.dtype(char).type(2)
    for view, (name, more, options) in itertools.product(VIEWS, CASES):
        x = view(whole)
        if char == "?" and options.get("dtype"):
            continue  # the stand-in for addition has no cast
        if name in SEQUENCES:
            made = getattr(copies, name)([gpu.array(x), gpu.array(x)], **options)
            expected = SEQUENCES[name]([x, x], **options)
        else:
            made = getattr(copies, name)(gpu.array(x), *more, **options)
            expected = getattr(np, name)(x, *more, **options)

        np.testing.assert_array_equal(gpu.host(made), expected, strict=True)


def test_what_is_no_copy_is_left_to_cupy(gpu, copies):
    def new(*shape):
        return gpu.array(np.zeros(shape))

    for made in (
        copies.concat([new(6, 5), new(6)], axis=1),
        copies.concat([new(6), new(6, 5)], axis=0),
        copies.concat(iter([new(6), new(6)])),
        copies.stack([new(3), new(4)]),
        copies.stack({"one": new(3)}.values()),
        copies.repeat(new(3), -1, axis=0),
        copies.repeat(new(), 3, axis=0),
        copies.tile(new(3, 3), (-1, -1)),
        copies.tile(new(3), 2),
        copies.roll(new(3, 2), (1, 2)),
        copies.roll(new(3), 1, axis=2),
        copies.tril(new(3)),
        copies.cumulative_sum(new(), axis=0, dtype=None, include_initial=True),
        copies.cumulative_sum(new(3, 3), axis=None, dtype=None, include_initial=False),
    ):
        assert made is NotImplemented
    for parts in ([new(6), new()], [new(), new()]):
        with pytest.raises(ValueError, match=r"xdev\.stack"):
            copies.concat(parts, axis=0)


@pytest.mark.parametrize("dtype", [">f8", ">i2", "<c8", "?"])
def test_a_number_on_cuda_has_the_machines_byte_order(gpu, dtype):
    number = np.ones((), dtype)
    made = cuda.CudaPlace(0).asarray(number, None, None)

    assert gpu.host(made) == 1
    assert made.dtype == number.dtype.newbyteorder("=")
