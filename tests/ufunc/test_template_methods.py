"""Reductions, scans, scatters and copies by the CUDA templates, on a stand-in."""

import itertools
import os

import numpy as np
import pytest
from hypothesis import given, strategies as st

import xdev
from xdev.compile.cubins import Elementwise, Operand, Reduce, Scan, Scatter
from xdev.facade import cuda, cuda_copies
from xdev.ufunc import cuda_layout as layout, cuda_methods, foreign
from xdev.ufunc.cuda_reductions import CudaReduction

DEEP = os.environ.get("HYPOTHESIS_PROFILE") == "deep"
SHAPES = [(5,), (70,), (3000,), (300_000,), (40, 50), (3, 4000), (2000, 3), (6, 70, 40)]


@pytest.mark.parametrize("method", ["reduce", "accumulate"])
@pytest.mark.parametrize("name", ["add", "first"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_reductions_and_scans_along_each_axis_keep_the_order(gpu, name, shape, method):
    ours = getattr(gpu.ufunc(name), method)
    x = gpu.sample(shape, "l") * (gpu.sample(shape, "?", 1) | (name == "add"))
    plain = np.frompyfunc(gpu.functions[name], 2, 1) if name == "first" else np.add
    for axis in range(len(shape)):
        expected = np.asarray(getattr(plain, method)(x, axis), "l")
        found = gpu.host(ours(gpu.array(x), axis=axis, dtype="l"))
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("char", "behfdFD" if DEEP else "befD")
def test_reductions_of_every_dtype_and_alignment(gpu, char):
    ufunc = gpu.ufunc("add", 0)
    for n, start in ((40_000, 0), (40_000, 1), (5000, 3), (100, 1)):
        x = gpu.sample(n + start, char)[start:]
        if char in "eb":
            x = (x % 2).astype(char) if char == "e" else x
        result = gpu.host(ufunc.reduce(gpu.array(x), axis=None, dtype=char))

        expected = x.sum(dtype="f" if char == "e" else char).astype(char)
        assert result.dtype == expected.dtype
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("axis", [None, (0, 1), (1, 2), (0, 2), -1, ()], ids=str)
@pytest.mark.parametrize("order", ["C", "F"])
def test_reductions_of_several_axes_with_masks_and_out(gpu, axis, order):
    ufunc = gpu.ufunc("add", 0)
    x, where = gpu.sample((6, 5, 70), "d"), gpu.sample((5, 70), "?", 3)
    x = np.asarray(x, order=order)
    for keepdims, mask, initial in itertools.product(
        (False, True), (True, where), (0, 5)
    ):
        expected = np.add.reduce(
            x, axis, keepdims=keepdims, where=mask, initial=initial
        )
        out = np.full(expected.shape, -1.0, order="F")
        there = mask if mask is True else gpu.array(mask)
        given = {"keepdims": keepdims, "where": there, "initial": initial}
        result = ufunc.reduce(gpu.array(x), axis=axis, dtype="d", **given)
        np.testing.assert_array_equal(gpu.host(result), expected)
        ufunc.reduce(gpu.array(x), axis=axis, dtype="d", out=gpu.array(out), **given)
        np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize(("shape", "axis"), [((100_000,), 0), ((300, 40), 0)], ids=str)
def test_segments_without_a_value_leave_none(gpu, shape, axis):
    ufunc, x = gpu.ufunc("first"), gpu.sample(shape, "l") + 1
    for density in (0, 1, 40_000):
        mask = np.zeros(x.size, bool)
        mask[-density:] = bool(density)
        mask, plain = mask.reshape(shape), np.frompyfunc(gpu.functions["first"], 2, 1)
        given = {"initial": 0, "where": gpu.array(mask)}
        made = ufunc.reduce(gpu.array(x), axis=axis, dtype="l", **given)

        expected = plain.reduce(x * mask, axis, initial=0)
        np.testing.assert_array_equal(gpu.host(made), expected)


@pytest.mark.parametrize(
    ("char", "shape"),
    itertools.product("efdbi?", [(70_000,), (600, 40), (9000, 64), (3, 4000)])
    if DEEP
    else [("e", (70_000,)), ("i", (600, 40)), ("b", (9000, 64))],
    ids=str,
)
def test_statistics_are_numpys(gpu, shape, char):
    rng = np.random.default_rng(3)
    x = (rng.normal(7, 2, shape) * (rng.random(shape) < 0.9)).astype(char)
    kept = {"axis": len(shape) - 1, "keepdims": True}
    for name, correction, plain in (
        ("count", 0, np.count_nonzero),
        ("norm", 0, lambda x, **how: np.sqrt((x * x).sum(**how))),
        ("mean", 0, np.mean),
        ("var", 0, np.var),
        ("std", 1.5, lambda x, **how: np.std(x, ddof=1.5, **how)),
    ):
        reduction = CudaReduction(gpu.loops("add"), 0, name)
        for how in ({"axis": None}, {"axis": 0}, kept):
            expected = np.asarray(plain(x.astype("d"), **how))
            for _ in range(2):  # the second time by the first one's plan
                made = reduction(gpu.array(x), correction=correction, **how)
                again = reduction.again(gpu.array(x), how["axis"], None, correction)

                made = gpu.host(made)
                dtype = np.intp if name == "count" else np.mean(x).dtype
                assert (made.dtype, made.shape) == (dtype, expected.shape)
                rtol = {"e": 1e-3, "f": 3e-6}.get(char, 1e-12)
                np.testing.assert_allclose(made, expected, rtol=rtol)
                if not kept.items() <= how.items():
                    np.testing.assert_array_equal(gpu.host(again), made)


@pytest.mark.parametrize("char", "?bHefd" if DEEP else "bed")
@pytest.mark.parametrize("shape", [*SHAPES, (9000, 64)], ids=str)
def test_places_of_extremes_are_the_first_ones(gpu, shape, char):
    x = gpu.sample(shape, char)
    samples = [x, x.copy()]
    if char in "efd":
        samples[1].flat[[x.size // 3, x.size // 2]] = np.nan
    for name, plain in (("argmax", np.argmax), ("argmin", np.argmin)):
        places = CudaReduction(gpu.loops("add"), 0, name)
        for y, axis in itertools.product(samples, (None, *range(x.ndim))):
            for view in (y, y[::-1, ...]) if axis is not None else (y,):
                made = gpu.host(places(gpu.array(view), axis=axis))

                expected = np.asarray(plain(view, axis))
                np.testing.assert_array_equal(made, expected, strict=True)


def test_places_are_of_one_axis_or_of_all(gpu):
    places, x = CudaReduction(gpu.loops("add"), 0, "argmax"), gpu.sample((3, 4), "d")
    for axis in ((0, 1), (0,), (), [0], 1.0, "1"):
        with pytest.raises(TypeError):
            np.argmax(x, axis)
        with pytest.raises(TypeError, match="integer"):
            places(gpu.array(x), axis=axis)
    for axis in (0, -1, None):
        assert gpu.host(places(gpu.array(np.asarray(3.0)), axis=axis)) == 0


def test_statistics_of_bfloat16_are_bfloat16(gpu):
    brain = np.dtype(pytest.importorskip("ml_dtypes").bfloat16)
    x = np.arange(3000).astype(brain)
    for name, plain in (("mean", np.mean), ("std", np.std)):
        made = CudaReduction(gpu.loops("add"), 0, name)(gpu.array(x), axis=None)

        assert gpu.host(made) == np.asarray(plain(x.astype("d"))).astype(brain)
        assert made.dtype == brain


def test_corrections_of_other_types_are_numpys(gpu):
    variance, x = CudaReduction(gpu.loops("add"), 0, "var"), gpu.sample((3, 4), "d")
    for correction in (1, True, np.int8(1), np.float32(1), np.asarray(1.0), np.nan):
        for _ in range(2):
            made = variance.again(gpu.array(x), None, None, correction)
            if made is NotImplemented:
                made = variance(gpu.array(x), axis=None, correction=correction)

            expected = np.var(x, correction=correction)
            np.testing.assert_allclose(gpu.host(made), expected, rtol=1e-14)
    for correction in (1 + 0j, "1", None):
        assert variance.again(gpu.array(x), None, None, correction) is NotImplemented
        with pytest.raises(TypeError):
            variance(gpu.array(x), axis=None, correction=correction)


def test_scans_in_place_of_slices_and_of_other_dtypes(gpu):
    ufunc = gpu.ufunc("add")
    for char in "eD":
        x = (gpu.sample(2000, char) != 0).astype(char)
        expected = np.add.accumulate(x.astype("d" if char == "e" else char)).astype(
            char
        )
        ours = x.copy()
        ufunc.accumulate(gpu.array(ours), axis=0, dtype=char, out=gpu.array(ours))
        np.testing.assert_array_equal(ours, expected)
    x = gpu.sample((50, 300), "i")[::2, ::-1]
    result = ufunc.accumulate(gpu.array(x), axis=1, dtype="i", out=None)
    np.testing.assert_array_equal(gpu.host(result), np.add.accumulate(x, 1, dtype="i"))


@pytest.mark.parametrize("axis", [0, 1])
def test_slices_are_folded_as_numpy_does(gpu, axis):
    add, x = gpu.ufunc("add"), gpu.sample((300, 400), "d")
    for indices in ([0, 5, 299], [7, 3, 3, 250, 0], [299], list(range(0, 300, 2))):
        found = gpu.host(add.reduceat(gpu.array(x), indices, axis))
        np.testing.assert_array_equal(found, np.add.reduceat(x, indices, axis))
    with pytest.raises(IndexError, match="0 to"):
        add.reduceat(gpu.array(x), [500], axis)


def test_outer_pairs_every_element(gpu):
    x, y, outer = (
        gpu.sample((3, 4), "f"),
        gpu.sample((5,), "d", 1),
        gpu.ufunc("add").outer,
    )
    for one, there in ((x, gpu.array(x)), (2.0, 2.0)):
        found = gpu.host(outer(there, gpu.array(y)))
        np.testing.assert_array_equal(found, np.add.outer(one, y))


def test_scatters_apply_repeated_positions_in_order(gpu):
    made = gpu.loops("add")
    x, y, expected = np.zeros(50, "f"), gpu.sample(4000, "d"), np.zeros(50, "f")
    positions = np.random.default_rng(2).integers(0, 50, 4000)
    order = np.argsort(positions, kind="stable")
    found = made.scalar.specialise((np.dtype("d"),) * 2)
    kernel = cuda_methods.Scatter(x.dtype, y.dtype, found.inputs, found.outputs[0])
    operands = [x, positions[order], order, y]

    launch = cuda_methods.prepared(made, found, kernel, 4000)
    launch([each.ctypes.data for each in operands])

    np.add.at(expected, positions, y)
    np.testing.assert_array_equal(x, expected)


class Tensor:
    """Another library's array, with a dtype that NumPy does not know."""

    dtype = "tensor.long"

    def __init__(self, array):
        self.array = array


class Tensors:
    """The adapter to it: it is told nothing of streams."""

    mutable = True
    on_cuda = staticmethod(lambda _: True)
    to_native = staticmethod(lambda x, _: x.array)
    stream = staticmethod(lambda _: None)
    begin_write = staticmethod(lambda *_: None)
    from_native = staticmethod(lambda made, _: Tensor(made))


def test_methods_of_other_libraries_arrays(gpu, monkeypatch):
    monkeypatch.setitem(foreign._known, Tensor, Tensors())
    total = xdev.vectorize(gpu.functions["add"], identity=0)
    x = gpu.sample((3, 40), "l")
    there = Tensor(gpu.array(x))
    out = Tensor(gpu.array(np.zeros(40, "l")))

    for found, expected in (
        (total.reduce(there, axis=1), np.add.reduce(x, axis=1)),
        (total.reduce(there, dtype="f4"), np.add.reduce(x, dtype="f4")),
        (total.accumulate(there), np.add.accumulate(x)),
        (total.reduceat(there, [0, 2]), np.add.reduceat(x, [0, 2])),
        (total.outer(there, there), np.add.outer(x, x)),
        (total(there, there), x + x),
        (total.reduce(there, out=out), np.add.reduce(x)),
    ):
        assert type(found) is Tensor
        np.testing.assert_array_equal(gpu.host(found.array), expected, strict=True)
    assert total.reduce(there, out=out) is out


@pytest.mark.parametrize("shape", [(70,), (300_000,), (6, 70, 40)], ids=str)
def test_a_reduction_is_repeated_for_other_values_of_its_layout(gpu, shape):
    total = xdev.vectorize(gpu.functions["add"], identity=0)
    for axis in (0, -1, None, (0,)):
        for seed in range(3):
            x = gpu.sample(shape, "i", seed)
            for dtype, view in ((None, x), ("d", x), (None, x[::-1]), (None, x[1:])):
                made = total.reduce(gpu.array(view), axis, dtype)

                expected = np.add.reduce(view, axis, dtype or "i")
                np.testing.assert_array_equal(gpu.host(made), expected, strict=True)


def test_what_is_no_key_and_what_was_not_seen_goes_the_general_way(gpu):
    total = xdev.vectorize(gpu.functions["add"], identity=0)
    x = gpu.sample((5, 6), "d")
    for axis in (1, (0, 1), np.int64(1), np.array(0)):
        for _ in range(2):
            made = total.reduce(gpu.array(x), axis)
            np.testing.assert_array_equal(gpu.host(made), np.add.reduce(x, axis))
    kept = total.reduce(gpu.array(x), 1, keepdims=True)
    assert kept.shape == (5, 1)
    assert gpu.host(total.reduce(gpu.array(x), 1, initial=5))[0] == x[0].sum() + 5


@pytest.mark.parametrize(
    "axis", [1.0, True, np.True_, np.float64(1), (1.0,), (0, True), (0.0, 1), "1"]
)
def test_an_axis_that_is_no_integer_is_refused_every_time(gpu, axis):
    total = xdev.vectorize(gpu.functions["add"], identity=0)
    x = gpu.sample((5, 6), "d")
    with pytest.raises(TypeError):
        np.add.reduce(x, axis)

    for known in ((), (1, (1,), (0, 1), np.int64(1))):
        for right in known * 2:
            made = total.reduce(gpu.array(x), right)
            np.testing.assert_array_equal(gpu.host(made), np.add.reduce(x, right))
        with pytest.raises(TypeError, match="integer"):
            total.reduce(gpu.array(x), axis)
        with pytest.raises(TypeError, match="integer"):
            total.accumulate(gpu.array(x), axis)
        with pytest.raises(TypeError, match="integer"):
            total.reduceat(gpu.array(x), [0], axis)


@pytest.mark.parametrize("axis", [[0], [0, 1], []], ids=str)
@pytest.mark.parametrize("shape", [(5, 6), ()], ids=str)
def test_axes_in_a_list_are_refused_in_the_words_of_the_cpu(gpu, shape, axis):
    total = xdev.vectorize(gpu.functions["add"], identity=0)
    x = gpu.sample(shape, "d")
    with pytest.raises(TypeError) as on_cpu:
        total.reduce(x, axis)

    for _ in range(2):
        with pytest.raises(TypeError) as on_cuda:
            total.reduce(gpu.array(x), axis)
        assert str(on_cuda.value) == str(on_cpu.value)


def test_an_array_of_no_dimensions_has_its_one_element_as_an_axis(gpu):
    total, x = gpu.ufunc("add"), np.asarray(3.0)
    for axis in (0, -1, None, ()) * 2:
        made = total.reduce(gpu.array(x), axis)
        assert gpu.host(made) == np.add.reduce(x, axis)
    for axis in (1, -2, (0,)):
        with pytest.raises(ValueError, match="axis") as numpys:
            np.add.reduce(x, axis)
        with pytest.raises(numpys.type, match="out of bounds"):
            total.reduce(gpu.array(x), axis)


def test_a_refused_repetition_goes_the_general_way(gpu):
    """On a stream that is new."""
    total, x = gpu.ufunc("add"), gpu.sample(300_000, "d")
    for stream in (0, 200, 0, 201):
        gpu.use_stream(stream)
        for _ in range(2):
            assert gpu.host(total.reduce(gpu.array(x))) == x.sum()
    gpu.use_stream(0)


@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
@pytest.mark.parametrize(
    ("char", "out"),
    [
        (char, out)
        for k, char in enumerate("BifD")
        for out in ("?hLefdD" if DEEP else "?hLefdD"[k::4])
    ],
)
def test_folds_take_outs_dtype_as_numpys(gpu, char, out):
    ufunc, x = gpu.ufunc("add", 0), np.full((3, 200), 3, char)
    for method, shape, inputs in (
        ("reduce", (3,), {}),
        ("accumulate", (3, 200), {}),
        ("reduceat", (3, 2), {"indices": [0, 50]}),
    ):
        expected, made = np.zeros(shape, out), np.zeros(shape, out)
        getattr(np.add, method)(x, *inputs.values(), axis=1, out=expected)
        keywords = {**inputs, "axis": 1, "dtype": None, "out": gpu.array(made)}
        getattr(ufunc, method)(gpu.array(x), **keywords)

        np.testing.assert_array_equal(made, expected)


def test_a_repeated_reduction_is_the_first_one_and_neither_takes_more_memory(gpu, cp):
    add, taken, allocate = gpu.ufunc("add"), [], cp.cuda.get_allocator()

    def counting(nbytes):
        taken.append(nbytes)
        return allocate(nbytes)

    for seed in range(3):
        x = gpu.sample(300_000, "d", seed)
        launches, there = gpu.launches, gpu.array(x)
        with cp.cuda.using_allocator(counting):
            result = add.reduce(there)
        assert gpu.host(result) == x.sum()
        assert gpu.launches == launches + 1
        assert len(taken) == 2, "the result, and where its segments meet"
        taken.clear()


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
    *((name, (), {"k": k}) for name in ("tril", "triu") for k in (0, 2, -9, 99)),
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


@pytest.fixture(params=[-1000, 10**9])
def copies(request, monkeypatch):
    """Copies for which everything is large, or nothing."""
    monkeypatch.setattr(cuda_copies, "LARGE", request.param)
    cuda_copies._join_plan.cache_clear()
    yield cuda_copies
    cuda_copies._join_plan.cache_clear()


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

        if made is NotImplemented:  # small, and many launches
            assert copies.LARGE > 0
            continue
        np.testing.assert_array_equal(gpu.host(made), expected, strict=True)


def test_a_diagonal_may_be_as_far_as_one_likes(gpu):
    x = np.arange(24.0).reshape(2, 3, 4)
    for k in (10**30, -(10**30)):
        lower, upper = (
            f(gpu.array(x), k=k) for f in (cuda_copies.tril, cuda_copies.triu)
        )
        np.testing.assert_array_equal(gpu.host(lower), x * (k > 0))
        np.testing.assert_array_equal(gpu.host(upper), x * (k < 0))


@pytest.mark.parametrize("char", "fdFD")
def test_triangles_of_complex_numbers_that_begin_at_any_real_one(gpu, char):
    dtype = np.dtype(char)
    memory = np.arange(9 * dtype.itemsize + 32, dtype=np.uint8)
    start = -memory.ctypes.data % 16
    for shift in (0, 4, 8, 16):
        x = memory[start + shift :][: 9 * dtype.itemsize].view(char).reshape(3, 3)
        made = cuda_copies.tril(gpu.array(x))
        np.testing.assert_array_equal(gpu.host(made), np.tril(x), strict=True)


@given(st.data())
def test_parts_of_any_size_are_joined_by_one_launch(gpu, data):
    axis = data.draw(st.integers(0, 2))
    sizes = data.draw(st.lists(st.integers(0, 9), min_size=1, max_size=15))
    arrays = [gpu.sample((3, n, 2) if axis == 1 else (n, 3, 2), "h", n) for n in sizes]
    if axis == 2:
        arrays = [x.reshape(3, 2, -1) for x in arrays]
    launches = gpu.launches
    joined = cuda_copies.concat([gpu.array(x) for x in arrays], axis=axis)
    if not any(sizes):
        assert joined is NotImplemented
        return
    expected = np.concat(arrays, axis=axis)
    np.testing.assert_array_equal(gpu.host(joined), expected, strict=True)
    assert gpu.launches == launches + 1


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
        copies.triu(new(3, 3), k=1.5),
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
    made = cuda.CudaFactory(0).asarray(number, None, None)

    assert gpu.host(made) == 1
    assert made.dtype == number.dtype.newbyteorder("=")


@given(st.integers(1, 2**31 - 1), st.integers(0, 2**31 - 1))
def test_division_by_multiplication_is_exact(extent, i):
    magic, shift = layout.divisor(extent)

    assert 0 < magic < 2**32
    assert (i * magic >> 32) + i >> shift == i // extent
    assert (i * magic >> 32) + i < 2**32


# Kernels are found again by what makes their code, and compiled once.

F, D, E = map(np.dtype, "fde")


def elementwise(kind="Linear", storage=F, loop=F, **layout):
    """Return a new template, of one input and one output."""
    operands = Operand(kind, storage, loop), Operand("Output", loop, loop)
    return Elementwise(operands, **layout)


TEMPLATES = [
    elementwise,
    lambda: elementwise(storage=D),
    lambda: elementwise(loop=D),
    lambda: elementwise("Constant"),
    lambda: elementwise("Uniform"),
    lambda: elementwise(dimensions=2),
    lambda: elementwise(wide=True),
    lambda: elementwise(far=True),
    lambda: elementwise("Strided", template="strided"),
    lambda: elementwise("Strided", template="strided", masked=True),
    lambda: Reduce(F, F, F, 32),
    lambda: Reduce(F, F, F, 256),
    lambda: Reduce(E, F, F, 32),
    lambda: Reduce(F, F, F, 32, masked=True),
    lambda: Reduce(F, F, F, 32, segmented=True),
    lambda: Scan(F, F, F, 32),
    lambda: Scan(F, F, F, 32, dimensions=2),
    lambda: Scatter(F, F, (F, F), F),
    lambda: Scatter(F, None, (F,), F),
]


def test_templates_of_other_code_differ_and_of_the_same_are_equal():
    for first, second in itertools.combinations_with_replacement(TEMPLATES, 2):
        one, two = first(), second()
        if first is second:
            assert one == two
            assert hash(one) == hash(two)
        code = [(x.template, x.entry, x.macros()) for x in (one, two)]
        assert one != two or code[0] == code[1]
