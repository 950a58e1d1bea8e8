"""Every function on every library: NumPy's values, its own arrays, inputs untouched."""

import ast
import inspect
import operator
import re

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import xdev
from xdev.ufunc import Ufunc

#: Defined up to signs, phases or order, or not at all.
FREE = {
    *("empty_like", "linalg.eig", "linalg.eigh", "linalg.eigvals", "linalg.qr"),
    *("linalg.svd", "unique_all", "unique_counts", "unique_inverse", "unique_values"),
}
NOT_ON_ARRAYS = {
    *("arange", "broadcast_shapes", "empty", "eye", "full", "isdtype", "linspace"),
    *("namespace", "ones", "zeros", "__array_namespace_info__"),
    *("fft.fftfreq", "fft.rfftfreq"),
}


#: Whose functions of NumPy's have no such arguments: our own, of NumPy's arrays.
OURS = {"argsort", "asarray", "finfo", "from_dlpack", "iinfo"}


def wanted_of(call):
    """Return what NumPy gives."""
    own = call.path in OURS
    function = call.function if own else operator.attrgetter(call.path)(np)
    return parts(function(*call.args, **call.kw))


def parts(result):
    return list(result) if isinstance(result, tuple | list) else [result]


def arrays_in(values):
    for value in values:
        if isinstance(value, list):
            yield from value
        elif hasattr(value, "dtype") and not isinstance(value, type):
            yield value


def test_every_function_that_takes_arrays_is_called(calls):
    names = {
        name
        for name in xdev.facade.__all__
        if inspect.isfunction(getattr(xdev, name))
        or isinstance(getattr(xdev, name), Ufunc)
    }
    for room in ("linalg", "fft"):
        names |= {f"{room}.{name}" for name in getattr(xdev, room).__all__}

    assert {call.path for call in calls} == names - NOT_ON_ARRAYS


def test_a_librarys_arrays_give_numpys_values_where_they_are_and_stay_as_they_were(
    library, call
):
    site = library.sites[-1]  # not the default device, where there are two
    args = tuple(library.put(arg, site) for arg in call.args)
    kw = {name: library.put(value, site) for name, value in call.kw.items()}
    given = list(arrays_in([*args, *kw.values()]))
    before = [library.host(x).tobytes() for x in given]
    if library.lacks(call):
        with pytest.raises((NotImplementedError, TypeError, ValueError)):
            call.function(*args, **kw)
        return

    results = parts(call.function(*args, **kw))

    assert [library.host(x).tobytes() for x in given] == before
    for result, expected in zip(results, wanted_of(call), strict=False):
        if not isinstance(expected, np.ndarray | np.generic):
            continue
        assert library.owns(result)
        assert xdev.device_of(result) == xdev.device_of(given[0])
        assert xdev.device_of(result).library == xdev.device_of(given[0]).library
        if library.name in ("numpy", "fake", "cupy"):
            assert result.dtype == expected.dtype
        if call.path not in FREE:
            np.testing.assert_allclose(
                library.host(result), expected, rtol=1e-6, atol=1e-8
            )


MATRIX = np.asarray([[4, 1 + 1j], [1 - 1j, 3]])
WHOLE = np.arange(4)
SIZES = np.diag([1.0, 0.1, 0.01])
#: What some library has in another way than the standard.
ARGUED = {
    "isin": lambda put: xdev.isin(put(WHOLE), put(WHOLE[:2]), invert=True),
    "take": lambda put: xdev.take(put(SIZES[0]), put(np.asarray([2, 0]))),
    "cholesky": lambda put: xdev.linalg.cholesky(put(MATRIX)),
    "cholesky, upper": lambda put: xdev.linalg.cholesky(put(MATRIX), upper=True),
    "matrix_rank": lambda put: xdev.linalg.matrix_rank(put(100 * SIZES), rtol=0.05),
    "matrix_rank, all": lambda put: xdev.linalg.matrix_rank(put(100 * SIZES)),
    "svd": lambda put: xdev.linalg.svd(put(SIZES), full_matrices=False).S,
    "searchsorted": lambda put: xdev.searchsorted(put(WHOLE + 0.5), 2.0),
    "eye": lambda put: xdev.eye(3, 5, k=1, device=xdev.device_of(put(SIZES))),
    "eye, high": lambda put: xdev.eye(5, 3, device=xdev.device_of(put(SIZES))),
}


@pytest.mark.parametrize("name", ARGUED)
def test_arguments_and_results_are_the_standards_in_every_library(library, name):
    found = ARGUED[name](library.put)

    assert library.owns(found)
    np.testing.assert_allclose(
        library.host(found), ARGUED[name](lambda x: x), rtol=1e-6
    )


def test_the_rank_of_jaxs_matrices_without_elements_is_0():
    jax = pytest.importorskip("jax")
    for shape in (0, 3), (3, 0), (2, 0, 3):
        found = xdev.linalg.matrix_rank(jax.numpy.zeros(shape))
        np.testing.assert_array_equal(found, np.zeros(shape[:-2]))


def strided(x):
    wide = np.zeros((*x.shape, 2), x.dtype)
    wide[..., 0] = x
    return wide[..., 0]


def backward(x):
    return np.flip(np.flip(x).copy())


def locked(x):
    x = x.copy()
    x.flags.writeable = False
    return x


@settings(
    max_examples=300,
    suppress_health_check=[HealthCheck.function_scoped_fixture],  # a constant table
)
@given(
    st.data(),
    st.lists(
        st.sampled_from([np.asfortranarray, strided, backward, locked]),
        min_size=3,
        max_size=3,
    ),
)
def test_arrays_of_any_layout_stay_as_they_were(calls, data, layouts):
    call = data.draw(st.sampled_from(calls))
    laid = iter(layouts)

    def lay(value):
        if isinstance(value, list):
            return [lay(each) for each in value]
        return next(laid)(value) if isinstance(value, np.ndarray) else value

    args = [lay(value) for value in call.args]
    kw = {name: lay(value) for name, value in call.kw.items()}
    given_ = list(arrays_in([*args, *kw.values()]))
    whole = [x if x.base is None else x.base for x in given_]
    before = [x.tobytes() for x in whole]
    if call.path == "from_dlpack" and not given_[0].flags.writeable:
        kw["copy"] = True  # DLPack lends writable memory only

    results = parts(call.function(*args, **kw))

    assert [x.tobytes() for x in whole] == before
    wanted = parts(call.function(*call.args, **call.kw))
    for result, expected in zip(results, wanted, strict=True):
        if isinstance(expected, np.ndarray) and call.path not in FREE:
            np.testing.assert_allclose(result, expected, rtol=1e-12, atol=1e-14)


def test_what_is_free_is_still_right(library):
    def host(x):
        return library.host(x)

    x = np.asarray([3, 1, 3, 2, 1, 3])
    values, first, inverse, counts = map(host, xdev.unique_all(library.put(x)))
    np.testing.assert_array_equal(values[inverse], x)
    np.testing.assert_array_equal(x[first], values)
    assert dict(zip(values.tolist(), counts.tolist(), strict=True)) == {
        1: 2,
        2: 1,
        3: 3,
    }
    assert dict(zip(values.tolist(), first.tolist(), strict=True)) == {1: 1, 2: 3, 3: 0}
    m = np.asarray([[2.0, 1.0], [1.0, 3.0], [0.0, 1.0]])
    u, s, vh = map(host, xdev.linalg.svd(library.put(m), full_matrices=False))
    np.testing.assert_allclose(u * s @ vh, m, atol=1e-6)
    q, r = map(host, xdev.linalg.qr(library.put(m)))
    np.testing.assert_allclose(q @ r, m, atol=1e-6)
    square = m.T @ m
    values, vectors = map(host, xdev.linalg.eigh(library.put(square)))
    np.testing.assert_allclose(square @ vectors, vectors * values, atol=1e-5)


ELEMENTWISE = ["add", "multiply", "maximum", "less", "atan2", "pow"]


@pytest.mark.parametrize("name", ELEMENTWISE)
@pytest.mark.parametrize("number", [2, 2.0, np.float64(2), np.asarray(2.0)])
def test_numbers_of_the_host_go_anywhere(library, name, number):
    function = getattr(xdev, name)
    host = np.asarray([1.0, 2.0, 3.0])
    x = library.put(host, library.sites[-1])

    for result, wanted in (
        (function(x, number), function(host, number)),
        (function(number, x), function(number, host)),
    ):
        assert library.owns(result)
        assert xdev.device_of(result) == xdev.device_of(x)
        np.testing.assert_allclose(library.host(result), wanted)
    assert library.owns(xdev.where(xdev.less(x, 2), x, number))
    assert library.owns(xdev.clip(x, 0, number))


@pytest.mark.parametrize("name", ["add", "sqrt", "clip", "logical_not"])
def test_out_is_written_or_refused_where_arrays_cannot_change(library, name):
    host = np.asarray([1.0, 4.0, 9.0])
    args = {"add": (host, 1.0), "clip": (host, 2, 5)}.get(name, (host,))
    if name == "logical_not":
        args = (host > 2,)
    wanted = getattr(xdev, name)(*args)
    out = library.put(np.zeros(3, wanted.dtype))
    given = [library.put(arg) for arg in args]
    if library.name == "jax":
        with pytest.raises(TypeError, match="immutable"):
            getattr(xdev, name)(*given, out=out)
        return

    assert getattr(xdev, name)(*given, out=out) is out
    np.testing.assert_allclose(library.host(out), wanted)


def test_jax_traces_through_the_facade():
    jax = pytest.importorskip("jax")
    x = np.asarray([1.0, 2.0, 3.0])

    def f(x, y):
        return xdev.sum(xdev.add(xdev.multiply(x, 2), y) + xdev.zeros_like(x))

    assert jax.jit(f)(x, x) == 18
    assert jax.grad(f)(x, jax.numpy.asarray(x)).tolist() == [2, 2, 2]
    assert jax.jit(lambda a: f(a, jax.numpy.asarray(x)))(x) == 18
    advice = r"move one, xdev\.asarray\(x2, device=xdev\.device_of\(x1\)\)"
    with pytest.raises(xdev.DeviceMismatchError, match=advice):
        jax.grad(f)(x, x)  # NumPy's array is not JAX's
    moved = jax.grad(lambda a: f(a, xdev.asarray(x, device=xdev.device_of(a))))(x)
    assert moved.tolist() == [2, 2, 2]
    moved = jax.grad(lambda a: f(a, xdev.namespace(a).asarray(x)))(x)
    assert moved.tolist() == [2, 2, 2]


def test_arrays_are_made_where_jax_will_compute():
    jax = pytest.importorskip("jax")
    last = jax.local_devices(backend="cpu")[-1]
    x = jax.device_put(jax.numpy.ones(3), last)
    seen = []

    def f(x):
        seen.append(xdev.device_of(x))
        return xdev.zeros(3, device=xdev.device_of(x)) + x

    assert jax.jit(f)(x).tolist() == [1, 1, 1]
    ones = jax.numpy.ones(3)
    assert jax.vmap(lambda x: f(x)[0])(ones).tolist() == [1, 1, 1]
    with jax.default_device(last):
        assert jax.jit(lambda x: f(x) + 1)(ones).tolist() == [2, 2, 2]
    here = jax.local_devices()[0]
    assert seen == [xdev.Device(here), xdev.Device(here), xdev.Device(last)]
    assert {device.library for device in seen} == {"jax"}


def test_pytorch_keeps_its_gradients():
    torch = pytest.importorskip("torch")
    x = torch.tensor([1.0, 2.0], requires_grad=True)

    xdev.sum(xdev.square(x)).backward()

    assert x.grad.tolist() == [2, 4]


def cut(x, join):
    """Return an array as a collection that is cut along all axes but the joined."""
    if isinstance(x, list):
        return [cut(each, join) for each in x]
    plain = not isinstance(x, np.ndarray)
    return x if plain else xdev.asarray(x, chunks=2).rechunk(join)


def test_dask_computes_nothing_by_itself_and_says_what_must_be_joined(imported, call):
    da, dask = imported("dask.array"), imported("dask")
    computed = []

    def counting(graph, keys, **_):
        computed.append(keys)
        return dask.get(graph, keys)

    def run(join):
        args = [cut(x, join) for x in call.args]
        return call.function(*args, **{k: cut(x, join) for k, x in call.kw.items()})

    with dask.config.set(scheduler=counting):
        try:
            made = run({})
        except (NotImplementedError, TypeError) as error:
            assert "x.compute()" in str(error)  # noqa: PT017 - some calls have it
            join = re.search(r"Join the chunks, x\.rechunk\((.*?)\);", str(error))
            if not join:
                assert call.path in ("from_dlpack", "repeat")
                return
            made = run(ast.literal_eval(join[1]))
    assert not computed

    for one, other in zip(
        parts(made), parts(call.function(*call.args, **call.kw)), strict=False
    ):
        if not isinstance(other, np.ndarray | np.generic):
            assert str(one) == str(other)
            continue
        assert isinstance(one, da.Array)
        if call.path not in FREE:
            np.testing.assert_allclose(one.compute(), other, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("flaw", ["shape", "data type"])
def test_a_wrong_out_is_told_the_call_that_makes_a_right_one(library, flaw):
    x = library.put(np.ones((2, 3)))
    wrong = np.ones(2) if flaw == "shape" else np.ones((2, 3), np.int64)
    out = library.put(wrong)
    reason = flaw if library.name != "jax" else "JAX's arrays are immutable"

    with pytest.raises((TypeError, ValueError), match=reason) as caught:
        xdev.add(x, x, out=out)

    if library.name == "jax":
        assert isinstance(caught.value, TypeError)
        return
    call = str(caught.value).rpartition("make one with ")[2]
    made = eval(call, {"xdev": xdev, "out": out})  # noqa: S307 - what is told
    assert library.owns(made)
    assert xdev.add(x, x, out=made) is made
    np.testing.assert_array_equal(library.host(made), np.full((2, 3), 2.0))
