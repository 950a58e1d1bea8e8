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
def test_matrices_share_their_structure_there_too(cuda):
    x = made("csr")
    y = x * 2
    y.indices, y.indptr = x.indices, x.indptr

    there = xdev.adapt(cuda, [x, y])

    assert there[0].indices is there[1].indices
    assert there[0].indptr is there[1].indptr


def test_cu_makes_the_values_single_and_keeps_the_indices():
    x = made("csr")

    moved = xdev.cu(x)

    assert moved.dtype == "float32"
    assert moved.indices.dtype == x.indices.dtype
    assert moved.format == "csr"


@pytest.mark.parametrize("form", FORMATS)
def test_a_sparse_one_is_no_array_and_is_told_what_works(form):
    x = made(form)
    for move in (xdev.to_numpy, lambda x: xdev.to_device(x, "fake")):
        with pytest.raises(TypeError, match=r"x\.toarray\(\), .*adapt\(device, x\)$"):
            move(x)

    assert xdev.adapt("cpu", x) is x
    assert xdev.to_device(x.toarray(), "fake").shape == x.shape


@pytest.mark.parametrize(
    ("device", "form", "dtype"),
    [
        *(("fake", form, "float64") for form in (*FORMATS, "bsr", "lil", "dok")),
        pytest.param("cuda", "csr", "int64", marks=pytest.mark.cuda),
    ],
)
def test_what_a_device_lacks_is_refused_and_what_converts_it_named(
    device, form, dtype, request
):
    if device == "cuda":
        request.getfixturevalue("cuda")
    x = made(form, dense=DENSE.astype(dtype))
    assert xdev.adapt("cpu", x) is x
    way = r"convert it .*x\.tocsr\(\).*, or " if device == "cuda" else ""
    words = rf"no sparse array of format {form} and dtype {dtype}: {way}move x\.toarr"
    with pytest.raises(TypeError, match=words):
        xdev.adapt(device, x)
    operator = scipy.sparse.linalg.aslinearoperator(x)
    assert xdev.adapt(device, operator) is operator
