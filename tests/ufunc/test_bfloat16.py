"""bfloat16: stored in 16 bits, computed in float32, numbers weak as beside float16."""

import ml_dtypes
import numpy as np
import pytest

import xdev

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)


affine = xdev.vectorize(identity=0)(lambda x, y: 3 * x + y)


def wide(x):
    return x.astype("f4")


def floats():
    """Return numbers of all magnitudes, but for nan."""
    bits = np.arange(0, 2**32, 40_009, dtype=np.uint64).astype(np.uint32)
    x = bits.view(np.float32)
    return x[~np.isnan(x)]


def samples(shape):
    rngs = map(np.random.default_rng, (0, 1))
    return [rng.normal(0, 9, shape).astype(BFLOAT16) for rng in rngs]


def bits(x):
    assert x.dtype == BFLOAT16
    return x.view("u2")


@pytest.mark.parametrize(
    "view", [lambda x: x, lambda x: x[::2], lambda x: x[::-1], lambda x: x[:1]]
)
def test_sums_are_rounded_once(view):
    x, y = samples(4000)
    x = view(x)
    y = y[: x.size]
    expected = (3 * wide(x) + wide(y)).astype(BFLOAT16)
    out = np.zeros(x.size, BFLOAT16)

    assert affine(x, y, out=out) is out
    for result in (affine(x, y), out):
        np.testing.assert_array_equal(bits(result), bits(expected))


@pytest.mark.parametrize("name", ["bfloat16", "float16"])
def test_every_value_passes_through_unharmed_and_floats_are_rounded(name):
    every, nan = np.arange(2**16, dtype=np.uint16).view(name), np.isnan
    numbers = every[~nan(wide(every))]
    found = xdev.vectorize(lambda x: x)(numbers)
    np.testing.assert_array_equal(found.view("u2"), numbers.view("u2"))
    with np.errstate(invalid="ignore"):
        assert nan(wide(xdev.vectorize(lambda x: x)(every[nan(wide(every))]))).all()
    rounded = xdev.vectorize([f"{name}(float32)"])(lambda x: x)
    near = np.sort(wide(numbers[np.isfinite(wide(numbers))]))
    for x in (floats(), near, near[:-1] / 2 + near[1:] / 2):
        with np.errstate(all="ignore"):
            result, expected = rounded(x), x.astype(name)
        np.testing.assert_array_equal(result.view("u2"), expected.view("u2"))


def test_numbers_are_weak_and_other_dtypes_are_not():
    x = np.arange(4).astype(BFLOAT16)
    for number in (2, 2.5, 2, 2.5):
        assert affine(x, number).dtype == BFLOAT16
        assert wide(affine(x, number)).tolist() == (3 * wide(x) + number).tolist()
    for other, result in ("f", "f"), ("d", "d"), ("F", "F"), ("b", BFLOAT16):
        assert affine(x, np.ones(4, other)).dtype == result
    for none in ("e", "i"):
        with pytest.raises(TypeError, match=r"(?i)dtype"):
            affine(x, np.ones(4, none))


def test_methods_and_results_of_other_kinds():
    x = np.arange(4).astype(BFLOAT16)

    assert wide(xdev.vectorize(lambda x, y: x + y).reduce(x)) == 6
    assert xdev.vectorize(lambda x: x > 1)(x).tolist() == [False, False, True, True]
    assert xdev.vectorize(lambda x: x / 2)(x).dtype == BFLOAT16
    assert affine.types[0] == "EE->E"
    cast = affine(np.float32(1), np.float32(1), dtype="float32", casting="unsafe")
    assert cast.dtype == "f"


@pytest.mark.cuda
@pytest.mark.parametrize(
    "view", [lambda x: x, lambda x: x[::2], lambda x: x[1:], lambda x: x[::-1]]
)
def test_cuda_gives_what_the_cpu_gives(cuda, view):
    def there(x):
        return xdev.asarray(x.view("u2"), device=cuda).view(BFLOAT16)

    def here(x):
        assert x.dtype == BFLOAT16
        return xdev.to_numpy(x.view("u2"))

    x, y = samples(4001)
    a, b = view(there(x)), view(there(y))
    x, y = view(x), view(y)

    for _ in range(2):
        np.testing.assert_array_equal(here(affine(a, b)), affine(x, y).view("u2"))
        np.testing.assert_array_equal(here(affine(a, 2.5)), affine(x, 2.5).view("u2"))
    few, some = x[:9].astype("i4"), there((x[:9].astype("i4")).astype(BFLOAT16))
    total = xdev.vectorize(lambda x, y: x + y)
    assert here(total.reduce(some)).view(BFLOAT16) == few.sum()


# Half precision in the CUDA templates, on a stand-in for a GPU.


@pytest.mark.parametrize("storage", ["bfloat16", "f2"])
def test_every_float_is_rounded_to_a_half_as_numpy_does(gpu, storage):
    x = floats()
    for values in (x, x.astype("d") * (1 + 2.0**-30), np.float32([np.nan])):
        out = np.zeros(values.size, storage)
        with np.errstate(over="ignore"):
            expected = values.astype(storage)
        gpu.ufunc("same")(gpu.array(values), gpu.array(out))
        numbers = ~np.isnan(values)
        np.testing.assert_array_equal(
            out.view("u2")[numbers], expected.view("u2")[numbers]
        )
        assert np.isnan(out.astype("f4")[~numbers]).all()
