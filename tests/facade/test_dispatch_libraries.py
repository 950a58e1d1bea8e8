"""Every function on every library: NumPy's values, its own arrays, inputs untouched."""

import ast
import inspect
import operator
import re

import numpy as np
import pytest

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


@pytest.mark.parametrize("name", ["add", "sqrt", "clip", "logical_not", "real"])
def test_out_is_written_or_refused_where_arrays_cannot_change(library, name):
    host = np.asarray([1.0, 4.0, 9.0])
    args = {"add": (host, 1.0), "clip": (host, 2, 5)}.get(name, (host,))
    if name == "logical_not":
        args = (host > 2,)
    wanted = getattr(xdev, name)(*args)
    site = library.sites[-1]  # not the default device, where there are two
    out = library.put(np.zeros(3, wanted.dtype), site)
    given = [library.put(arg, site) for arg in args]
    if library.name == "jax":
        with pytest.raises(TypeError, match="immutable"):
            getattr(xdev, name)(*given, out=out)
        return

    assert getattr(xdev, name)(*given, out=out) is out
    np.testing.assert_allclose(library.host(out), wanted)


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


def test_values_that_are_free_and_arguments_are_right(library):
    put, host, sizes = library.put, library.host, np.diag([1.0, 0.1, 0.01])
    x = np.asarray([3, 1, 3, 2, 1, 3])
    values, first, inverse, counts = map(host, xdev.unique_all(put(x)))
    np.testing.assert_array_equal(values[inverse], x)
    assert dict(zip(values.tolist(), first.tolist(), strict=True)) == {1: 1, 2: 3, 3: 0}
    times = dict(zip(values.tolist(), counts.tolist(), strict=True))
    assert times == {1: 2, 2: 1, 3: 3}
    found = xdev.linalg.svd(put(sizes), full_matrices=False).S
    np.testing.assert_allclose(host(found), np.diag(sizes), rtol=1e-6)
    assert int(host(xdev.linalg.matrix_rank(put(100 * sizes), rtol=0.05))) == 2
    m = np.asarray([[4, 1 + 1j], [1 - 1j, 3]])
    upper = host(xdev.linalg.cholesky(put(m), upper=True))
    np.testing.assert_allclose(upper.conj().T @ upper, m, rtol=1e-6)
    assert not np.tril(upper, -1).any()
