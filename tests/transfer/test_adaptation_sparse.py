"""Sparse matrices and arrays: SciPy's here, CuPy's there."""

import numpy as np
import pytest
import scipy.sparse

import xdev

DENSE = np.array([[0, 1.5, 0, 2], [0, 0, 0, 0], [3, 0, 4, 0]])
FORMATS = ("coo", "csr", "csc", "dia")
KINDS = ("matrix", "array")


def made(form, kind="array", dense=DENSE):
    return getattr(scipy.sparse, f"{form}_{kind}")(dense)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("dtype", ["bool", "float32", "float64", "complex128"])
def test_there_and_back(real_device, form, kind, dtype):
    x = made(form, kind, DENSE.astype(dtype))

    there = xdev.adapt(real_device, {"x": x})["x"]

    if real_device == "cpu":
        assert there is x
    else:
        assert type(there).__module__.startswith("cupyx.scipy.sparse")
        assert type(there).__name__ == type(x).__name__
        assert xdev.device_of(there.data) == real_device
        assert (there.shape, there.dtype) == (x.shape, x.dtype)
        if dtype != "bool":  # cuSPARSE has no product of those
            vector = np.arange(1, 5).astype(dtype)
            result = there @ xdev.to_device(vector, real_device)
            np.testing.assert_allclose(xdev.to_numpy(result), x @ vector)
    back = xdev.adapt("cpu", there)
    assert type(back) is type(x)
    np.testing.assert_array_equal(back.toarray(), x.toarray())


@pytest.mark.cuda
def test_a_vector_goes_to_cuda_and_back(cuda):
    for form in ("coo", "csr"):
        x = getattr(scipy.sparse, f"{form}_array")(DENSE[0])
        back = xdev.adapt("cpu", xdev.adapt(cuda, x))
        assert back.shape == (4,)
        np.testing.assert_array_equal(back.toarray(), DENSE[0])


@pytest.mark.cuda
def test_matrices_share_their_structure_there_too(cuda):
    x = made("csr")
    y = x * 2
    y.indices, y.indptr = x.indices, x.indptr

    there = xdev.adapt(cuda, [x, y])

    assert there[0].indices is there[1].indices
    assert there[0].indptr is there[1].indptr


@pytest.mark.cuda
def test_what_cuda_cannot_hold_is_an_error(cuda):
    with pytest.raises(TypeError, match=r'dtype int64: .*astype\("float64"\)'):
        xdev.adapt(cuda, made("csr", dense=DENSE.astype("int64")))


def test_cu_makes_the_values_single_and_keeps_the_indices():
    x = made("csr")

    moved = xdev.cu(x)

    assert moved.dtype == "float32"
    assert moved.indices.dtype == x.indices.dtype
    assert moved.format == "csr"


@pytest.mark.parametrize("form", ["bsr", "lil", "dok"])
def test_other_formats_stay_or_are_refused(form):
    x = made(form)

    assert xdev.adapt("cpu", x) is x
    with pytest.raises(TypeError, match=rf"array of format {form} .*x\.tocsr\(\)"):
        xdev.adapt("fake", x)


@pytest.mark.parametrize("form", FORMATS)
def test_the_fake_devices_have_no_sparse_library(form):
    with pytest.raises(
        TypeError, match=r"fake:0 has no sparse array .* x\.toarray\(\)"
    ):
        xdev.adapt("fake", made(form))


@pytest.mark.parametrize("form", FORMATS)
def test_a_sparse_one_is_no_array_and_is_told_what_works(form):
    x = made(form)
    for move in (xdev.to_numpy, lambda x: xdev.to_device(x, "fake")):
        with pytest.raises(TypeError, match=r"x\.toarray\(\), .*adapt\(device, x\)$"):
            move(x)

    assert xdev.adapt("cpu", x) is x
    assert xdev.to_device(x.toarray(), "fake").shape == x.shape


def test_what_is_not_sparse_is_left_alone():
    operator = scipy.sparse.linalg.aslinearoperator(DENSE)
    assert xdev.adapt("fake", operator) is operator


def test_nobody_else_loads_scipy(python):
    code = """if 1:
        import sys, numpy, xdev
        xdev.adapt("fake", {"a": [numpy.ones(3)], "b": "text"})
        xdev.cu(numpy.ones(3))
        assert not {"scipy", "cupyx.scipy.sparse"} & set(sys.modules)
    """
    assert python("-c", code).returncode == 0
