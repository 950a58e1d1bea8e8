"""The facade on Dask's collections: NumPy's values, later, in chunks of its own."""

import operator

import numpy as np
import pytest

import xdev

da = pytest.importorskip("dask.array")
RNG = np.random.default_rng(2)
X, Y = RNG.uniform(0.1, 0.9, (2, 5, 6))
S = RNG.standard_normal((4, 3, 3)) + 3 * np.eye(3)

MAKERS = {
    "zeros": lambda **kw: xdev.zeros((5, 7), xdev.float32, **kw),
    "ones": lambda **kw: xdev.ones((5, 7), **kw),
    "full": lambda **kw: xdev.full((5, 7), 2, **kw),
    "eye": lambda **kw: xdev.eye(5, 7, k=-1, **kw),
    "asarray": lambda **kw: xdev.asarray([[1, 2, 3]] * 5, **kw),
    "zeros_like": lambda **kw: xdev.zeros_like(X, **kw),
    "ones_like": lambda **kw: xdev.ones_like(X, xdev.int8, **kw),
    "full_like": lambda **kw: xdev.full_like(X, 0.5, **kw),
}


@pytest.mark.parametrize("name", [*MAKERS])
def test_creation_with_chunks_makes_collections_of_the_plain_values(
    lazy, real_device, name
):
    make = MAKERS[name]

    made = make(chunks=(2, 3), device=real_device)

    plain = make(device=real_device)
    assert type(plain) is type(made._meta), "without chunks= it is a plain array"
    assert xdev.device_of(made) == real_device
    assert made.chunksize == (2, 3)
    assert (made.shape, made.dtype) == (plain.shape, plain.dtype)
    np.testing.assert_array_equal(lazy.values(made), xdev.to_numpy(plain))
    assert len(made.__dask_graph__()) <= made.npartitions + 1


def test_what_is_like_a_collection_of_unknown_shape_has_its_chunks(lazy):
    x = xdev.asarray(X, chunks=2)  # of CuPy's chunks Dask's x[mask] says NumPy's
    some = x[x > 0.5]

    for like in (xdev.full_like(some, 3), xdev.empty_like(some, xdev.int8)):
        assert type(like._meta) is type(x._meta)
        assert lazy.values(like).shape == X[X > 0.5].shape
    made = xdev.zeros_like(some, xdev.float32) + some
    np.testing.assert_array_equal(np.sort(lazy.values(made)), np.sort(X[X > 0.5]))


@pytest.mark.usefixtures("lazy")
def test_lists_of_collections_are_not_computed_unasked():
    x = xdev.asarray(X, chunks=2)

    for nested in ([x, x], [0.5, [1.0, (2.0, x[0, 0])]]):
        with pytest.raises(TypeError, match=r"not computed unasked.*xdev\.stack"):
            xdev.asarray(nested)


RANGES = [
    *(("arange", ends, {}) for ends in [(10,), (0, 10, 3), (0.0, 1.0, 0.1)]),
    *(("arange", (5, -5, -0.7), {"dtype": kind}) for kind in ("float32", "int32")),
    *(("linspace", ends, {}) for ends in [(0, 1, 10), (0.1, 0.7, 33), (1j, 2, 5)]),
    *(("linspace", (0, 1, n), {"endpoint": False}) for n in (0, 1, 10)),
]


@pytest.mark.parametrize(("name", "ends", "options"), RANGES)
def test_ranges_have_numpys_bits(lazy, name, ends, options):
    expected = getattr(np, name)(*ends, **options)
    for chunks in (1, 3, "auto"):
        made = getattr(xdev, name)(*ends, **options, chunks=chunks)

        assert made.dtype == expected.dtype
        np.testing.assert_array_equal(lazy.values(made), expected)


def test_chunks_go_to_a_device_when_they_are_computed(lazy):
    x = xdev.asarray(X, chunks=-1)

    there = xdev.asarray(x, device=xdev.Device("fake:1", "dask"))

    assert repr(xdev.device_of(there)) == "Device('fake:1', 'dask')"
    with xdev.transfer_guard("log") as copies:
        assert lazy.values(there).tolist() == X.tolist()
    assert copies.copies > 0


def test_fake_devices_have_no_chunks():
    with xdev.use_device("fake"):
        for make in (
            lambda: xdev.zeros(6, chunks=3),
            lambda: xdev.arange(6, chunks=3),
            lambda: xdev.asarray(X, device="fake", chunks=3),
            lambda: xdev.ones_like(X, device="fake:1", chunks=3),
        ):
            with pytest.raises(xdev.ConfigurationError, match=r"fake.*device='cpu'"):
                make()
        assert xdev.zeros(6, chunks=3, device="cpu").compute().sum() == 0


def test_what_is_like_a_collection_is_cut_like_it(lazy, real_device):
    x = xdev.ones((4, 6), xdev.float32, device=real_device, chunks=(1, 4))

    for like in (xdev.zeros_like(x), xdev.full_like(x, 3), xdev.empty_like(x)):
        assert like.chunks == x.chunks
        assert type(like._meta) is type(x._meta)
    assert xdev.ones_like(x, chunks=2).chunksize == (2, 2)
    assert xdev.asarray(x, chunks=3).chunksize == (3, 3)
    assert lazy.values(xdev.full_like(x, 3)).tolist() == [[3] * 6] * 4


def test_chunks_are_made_in_the_pool_and_only_when_they_are_computed(lazy):
    before = xdev.memory.allocated("cpu")
    x = xdev.zeros(2**20, chunks=2**18)
    assert xdev.memory.allocated("cpu") == before

    seen = x.map_blocks(
        lambda _: np.asarray([xdev.memory.allocated("cpu") - before]), dtype=int
    )
    assert lazy.values(seen).max() >= 2**18 * 8


@pytest.mark.parametrize("chunks", [0, (3, 3, 3), 2.5, "big", {3: 2}, ((2, 2), 6)])
@pytest.mark.usefixtures("lazy")
def test_chunks_that_cut_nothing_are_refused_with_the_way_out(chunks):
    for make in (
        lambda: xdev.ones((5, 6), chunks=chunks),
        lambda: xdev.asarray(xdev.ones((5, 6), chunks=1), chunks=chunks),
    ):
        with pytest.raises(ValueError, match=r"does not cut .*chunks=1000.*'auto'"):
            make()


PAIRS = [
    xdev.add,
    lambda x, y: xdev.where(x > y, x, y),
    lambda x, y: xdev.clip(x, min=y),
    lambda x, y: xdev.matmul(x, xdev.matrix_transpose(y)),
    lambda x, y: xdev.concat([x, y]),
    lambda x, y: xdev.stack([x, y], axis=1),
    lambda x, y: xdev.take_along_axis(x, xdev.astype(y * 5, xdev.int64)),
    xdev.isin,
    lambda x, y: xdev.tensordot(x, y, axes=([1], [1])),
    operator.mul,
]


@pytest.mark.parametrize("call", PAIRS)
@pytest.mark.parametrize("order", ["first", "last"])
def test_plain_arrays_are_taken_beside_collections_of_their_kind(
    lazy, real_device, call, order
):
    x, y = xdev.asarray(X, device=real_device), xdev.asarray(Y, device=real_device)
    cut = [xdev.asarray(each, chunks=(2, -1)) for each in (x, y)]

    made = call(cut[0], y) if order == "first" else call(x, cut[1])

    assert isinstance(made, da.Array)
    np.testing.assert_allclose(lazy.values(made), xdev.to_numpy(call(x, y)), rtol=1e-14)


def test_arrays_of_another_device_beside_collections_are_refused():
    x = xdev.asarray(X, chunks=3)

    with pytest.raises(xdev.DeviceMismatchError, match=r"x2 .* is on fake:0"):
        xdev.add(x, xdev.asarray(X, device="fake"))
    with pytest.raises(xdev.DeviceMismatchError, match=r"arrays\[2\]"):
        xdev.concat([x, X, xdev.asarray(X, device="fake")])


MATRICES = {
    **dict.fromkeys(["cholesky", "eigh", "eigvalsh"], (S @ S.mT,)),
    **dict.fromkeys(["det", "eig", "eigvals", "inv", "matrix_rank", "slogdet"], (S,)),
    **dict.fromkeys(["pinv", "qr", "svd", "svdvals"], (S[:, :2],)),
    "matrix_power": (S, 3),
    "solve": (S, S + 1),
    "cross": (S[0], S[1]),
}


@pytest.mark.parametrize("name", MATRICES)
def test_stacks_of_matrices_are_computed_block_by_block(lazy, real_device, name):
    function = getattr(xdev.linalg, name)
    args = [
        xdev.asarray(x, device=real_device) if isinstance(x, np.ndarray) else x
        for x in MATRICES[name]
    ]
    cut = [xdev.asarray(x, chunks=(2, *x.shape[1:])) for x in args[:1]]

    made = function(*cut, *args[1:])

    expected = function(*args)
    assert type(made) is type(expected) or not isinstance(expected, tuple)
    made, expected = (x if isinstance(x, tuple) else (x,) for x in (made, expected))
    for one, other in zip(made, expected, strict=True):
        assert one.shape == other.shape
        assert type(one._meta) is type(other)
        exact = real_device == "cpu"  # elsewhere batches may be computed in other ways
        np.testing.assert_allclose(
            lazy.values(one), xdev.to_numpy(other), rtol=0 if exact else 1e-9
        )


def test_one_matrix_in_several_chunks_is_dasks(lazy):
    matrix = np.eye(4) + 0.1 * np.outer(X[0, :4], X[0, :4])
    x = xdev.asarray(matrix, chunks=2)

    for function in (xdev.linalg.cholesky, xdev.linalg.inv):
        np.testing.assert_allclose(lazy.values(function(x)), function(matrix))
    tall = xdev.asarray(X, chunks=(2, -1))
    with pytest.raises(NotImplementedError, match="full_matrices=False alone"):
        xdev.linalg.svd(tall)
    assert xdev.linalg.svd(tall, full_matrices=False).U.shape == (5, 5)
    np.testing.assert_allclose(
        lazy.values(xdev.linalg.svdvals(tall)), xdev.linalg.svdvals(X)
    )


@pytest.mark.usefixtures("lazy")
def test_what_has_no_way_over_blocks_says_the_way_out():
    x = xdev.asarray(X, chunks=2)

    with pytest.raises(TypeError, match=r"no memory before x\.compute\(\)"):
        xdev.from_dlpack(x)
    with pytest.raises(NotImplementedError, match=r"xdev\.repeat\(x\.compute\(\)\)"):
        xdev.repeat(x, np.arange(6), axis=1)
    assert xdev.broadcast_shapes(x.shape, (6,)) == (5, 6)


def test_out_becomes_the_result_but_a_slice_is_no_view(lazy):
    x = xdev.asarray(X, chunks=2)
    out = xdev.zeros((5, 6), chunks=3)

    assert xdev.exp(x, out=out) is out
    np.testing.assert_array_equal(lazy.values(out), np.exp(X))
    with pytest.raises(ValueError, match=r"no view.*y\[\.\.\.\] = "):
        xdev.exp(x[1:], out=out[1:])
    for plain in (np.zeros((5, 6)), (np.zeros((5, 6)),)):
        with pytest.raises(TypeError, match=r"xdev\.add: out is numpy\.nd.*leave out="):
            xdev.add(x, 1, out=plain)


@pytest.mark.parametrize("computed", [False, True])
def test_timing_says_where_a_collection_was_not_computed(computed):
    x = xdev.ones((4, 6), chunks=(2, 3), device="cpu")
    call = (lambda: xdev.sum(x).compute()) if computed else (lambda: xdev.sum(x))
    notes = xdev.timeit(call, number=1, repeat=1).notes
    assert any(".compute()" in note for note in notes) is not computed
