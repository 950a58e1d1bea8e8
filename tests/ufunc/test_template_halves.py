"""Half precision in the CUDA templates, on a stand-in for a GPU."""

import numpy as np
import pytest


def test_bfloat16_is_computed_in_float32_and_rounded_once(gpu):
    brain = np.dtype(pytest.importorskip("ml_dtypes").bfloat16)
    x, y = (
        np.random.default_rng(k).normal(0, 9, (70, 33)).astype(brain) for k in (0, 1)
    )
    chain = gpu.ufunc("chain")
    for view in (lambda x: x, lambda x: x[:, 1:], lambda x: x[::2, ::3], np.transpose):
        a, b = view(x), view(y)
        expected = (a.astype("f4") * b.astype("f4") + a.astype("f4")).astype(brain)
        for _ in range(2):
            made = chain(gpu.array(a), gpu.array(b), gpu.array(a))
            assert made.dtype == brain
            assert gpu.host(made).view("u2").tolist() == expected.view("u2").tolist()
    by_number = gpu.ufunc("add")(gpu.array(x), 2.5)
    expected = (x.astype("f4") + np.float32(2.5)).astype(brain)
    assert by_number.dtype == brain
    np.testing.assert_array_equal(gpu.host(by_number), expected)


@pytest.mark.parametrize("storage", ["bfloat16", "f2"])
def test_every_float_is_rounded_to_a_half_as_numpy_does(gpu, storage):
    pytest.importorskip("ml_dtypes")
    bits = np.arange(0, 2**32, 40_009, dtype=np.uint64).astype(np.uint32)
    x = bits.view(np.float32)
    x = x[~np.isnan(x)]
    for values in (x, x.astype("d") * (1 + 2.0**-30)):
        out = np.zeros(x.size, storage)
        with np.errstate(over="ignore"):
            expected = values.astype(storage)
        gpu.ufunc("same")(gpu.array(values), gpu.array(out))
        np.testing.assert_array_equal(out.view("u2"), expected.view("u2"))
    nan, out = np.full(3, np.nan, "f4"), np.zeros(3, storage)
    gpu.ufunc("same")(gpu.array(nan), gpu.array(out))
    assert np.isnan(out.astype("f4")).all()


def test_reductions_and_scans_of_bfloat16_fold_in_float32(gpu):
    brain = np.dtype(pytest.importorskip("ml_dtypes").bfloat16)
    x = (gpu.sample((40, 300), "i") % 3).astype(brain)
    ufunc = gpu.methods("add", 0)

    for axis in (0, 1, None):
        expected = x.astype("f4").sum(axis=axis).astype(brain)
        found = gpu.host(ufunc.reduce(gpu.array(x), axis=axis))
        assert found.dtype == brain
        np.testing.assert_array_equal(found, expected)
    found = gpu.host(ufunc.accumulate(gpu.array(x), axis=1, dtype=None, out=None))
    expected = np.add.accumulate(x.astype("f4"), 1).astype(brain)
    np.testing.assert_array_equal(found, expected)
