"""NumPy programs, as they are written, with ``import xdev.numpy as np``."""

import itertools

import numpy  # noqa: ICN001 - np is what is tested
import pytest
from running import pickled

import xdev
import xdev.numpy


def jacobi(np):
    a = np.fromfunction(lambda i, j: i * (j + 2) / 30, (30, 30), dtype=np.float64)
    b = a.copy()
    for _ in range(5):
        b[1:-1, 1:-1] = 0.2 * (
            a[1:-1, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:] + a[2:, 1:-1] + a[:-2, 1:-1]
        )
        a[1:-1, 1:-1] = b[1:-1, 1:-1]
    return a


def test_a_numpy_program_gives_numpys_numbers_on_every_device(device):
    wanted = jacobi(numpy)

    with xdev.use_device(device):
        result = jacobi(xdev.numpy)

    assert xdev.device_of(result) == device
    numpy.testing.assert_allclose(xdev.to_numpy(result), wanted, rtol=1e-10, atol=1e-12)


MADE = """zeros((2, 3), 'f4', 'F') | full((2, 3), [1, 2, 3]) | eye(2, 3, 1, int)
arange(1, 5, 2, 'f4') | arange(start=1, stop=5) | linspace([0, 1], 2, 5, axis=1)
array([[1, 2], [3, 4]], order='F') | mgrid[0:2, 0:3] | r_[1, 2, 3:6]
ndarray((2, 3), 'f4') | random.default_rng(3).normal(size=4)
random.Generator(numpy.random.PCG64(1)).permutation(5)
linalg.svd([[1.0, 2.0], [3.0, 5.0]]).S"""


@pytest.mark.parametrize("written", MADE.replace("\n", " | ").split(" | "))
def test_what_makes_arrays_makes_numpys_on_the_default_device(device, written):
    wanted = eval(f"numpy.{written}")  # noqa: S307 - the list above

    with xdev.use_device(device):
        result = eval(f"np.{written}", {"np": xdev.numpy, "numpy": numpy})  # noqa: S307

    assert xdev.device_of(result) == device
    assert (result.shape, result.dtype) == (wanted.shape, wanted.dtype)
    assert result.flags.f_contiguous == wanted.flags.f_contiguous
    if "empty" not in written and "ndarray" not in written:
        numpy.testing.assert_array_equal(xdev.to_numpy(result), wanted)


@pytest.mark.parametrize("save", ["savez", "savez_compressed"])
def test_archives_are_read_to_the_default_device(device, tmp_path, save):
    path = tmp_path / "saved.npz"
    getattr(numpy, save)(path, a=[1.0, 2.0], b="text")

    with xdev.use_device(device), xdev.numpy.load(path) as archive:
        found = [archive["a"], archive.f.a, dict(archive)["a"], archive.get("a")]
        text = archive["b"]

    assert isinstance(archive, numpy.lib.npyio.NpzFile)
    assert {xdev.device_of(x) for x in found} == {device}
    assert [xdev.to_numpy(x).tolist() for x in found] == [[1, 2]] * 4
    assert xdev.device_of(text) == "cpu"


def test_arrays_among_the_arguments_say_the_device(device):
    np, x = xdev.numpy, xdev.asarray([1.0, 2.0], device=device)
    for result in (np.zeros(3, like=x), np.full(2, x), np.array([x, x]), np.r_[x, x]):
        assert xdev.device_of(result) == device


#: Calls of NumPy's functions with ``device=``, without and with an array.
PLACED = """arange(3 | arange(3, dtype='f4' | asanyarray([1, 2] | asanyarray(x | empty(3
asarray([1.0, 2.0], 'f4' | asarray(x, dtype='f4' | astype(x, 'f4' | empty_like([1, 2]
empty_like(x, 'f4' | eye(3 | fft.fftfreq(8 | fft.rfftfreq(8, d=0.5 | from_dlpack(x
full(3, 7 | full(3, 7, like=x | full_like([1, 2], 3 | full_like(x, 3
linspace(0, 1, 3 | linspace(x, 5, 3 | linspace([0, 1], 2, 3 | ones(3 | ones(3, like=x
ones_like([1, 2] | ones_like(x | zeros(3 | zeros(3, order='F', like=x
zeros_like([1, 2] | zeros_like(x, dtype='f4'"""


@pytest.mark.parametrize("written", PLACED.replace("\n", " | ").split(" | "))
def test_a_function_obeys_device(device, written):
    values = numpy.array([1.0, 2.0])
    wanted = eval(f"np.{written})", {"np": numpy, "x": values})  # noqa: S307 - the table
    for default, asked, there in itertools.product(("cpu", device), repeat=3):
        x = xdev.to_device(values, there)

        with xdev.use_device(default):
            names = {"np": xdev.numpy, "x": x, "asked": asked}
            found = eval(f"np.{written}, device=asked)", names)  # noqa: S307 - the table

        assert xdev.device_of(found) == xdev.Device(asked)
        assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
        if "empty" not in written:
            numpy.testing.assert_allclose(xdev.to_numpy(found), wanted)


@pytest.mark.fake
def test_a_device_that_cannot_be_is_refused_with_the_way_out():
    np = xdev.numpy
    x = xdev.ones((2, 3), device="fake")

    with pytest.raises(xdev.ConfigurationError, match="no device is called 'gpu'"):
        np.asarray([1.0], device="gpu")
    for make in (np.zeros(3, "U3", device="cpu"), np.asarray(["a"], device="cpu")):
        assert type(make) is numpy.ndarray
    for call in (
        lambda: np.zeros(3, "U3", device="fake"),
        lambda: np.asarray(["a"], device="fake"),
    ):
        with pytest.raises(TypeError, match=r"fake:0 ha\w+ no .*dtype <U"):
            call()
    for make in (np.zeros, np.eye, lambda n, order: np.full(n, 1, order=order)):
        with pytest.raises(ValueError, match="order"):
            make(3, order="Z")
    for device in ("cpu", "fake"):
        made = np.zeros_like(x, order="F", device=device)
        assert xdev.device_of(made) == xdev.Device(device)
        assert made.flags.f_contiguous


def test_a_ufunc_has_numpys_methods(device):
    np = xdev.numpy
    x = xdev.asarray([1.0, 2.0, 4.0], device=device)
    total = xdev.zeros((), device=device)

    assert float(np.add.reduce(x)) == 7
    assert xdev.to_numpy(np.subtract.outer(x, x)).tolist()[2] == [3, 2, 0]
    assert np.add.reduce(x, out=total) is total
    assert (np.add.nin, np.add.identity, np.frexp.nout) == (2, 0, 2)
    assert isinstance(np.add, np.ufunc)
    assert {"nin", "types", "reduce"} <= {*dir(np.add)}
    assert np.add.reduce.__qualname__ == "add.reduce"
    # CuPy has none of these: they are the engine's.
    assert float(np.minimum.reduce(x)) == 1
    assert xdev.to_numpy(np.maximum.accumulate(x)).tolist() == [1, 2, 4]
    assert float(np.hypot.reduce(x[:2])) == pytest.approx(5**0.5)


def test_vectorize_runs_where_the_arrays_are(device):
    np = xdev.numpy
    x = xdev.asarray([-1.0, 2.0], device=device)
    relu = np.vectorize(lambda v: v if v > 0 else 0.0)

    result = relu(x)

    assert xdev.device_of(result) == device
    assert xdev.to_numpy(result).tolist() == [0, 2]


def test_arrays_of_two_devices_are_refused_with_the_way_out():
    np = xdev.numpy
    with xdev.use_device("fake"):
        x = np.ones(3)

    with pytest.raises(xdev.DeviceMismatchError, match=r"x2 .*to_device\(x2, 'fake:0'"):
        np.add(x, numpy.ones(3))
    with pytest.raises(xdev.DeviceMismatchError, match=r"tup\[1\]"):
        np.hstack([x, numpy.ones(3)])
    assert xdev.to_numpy(np.add(x, numpy.array(1.0))).tolist() == [2, 2, 2]
    assert xdev.to_numpy(np.add(numpy.array(1.0), x)).tolist() == [2, 2, 2]


@pytest.mark.fake
@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("insert(x, 0, 1)", r"cupy has no 'insert'.*xdev\.to_numpy\(x\)"),
        ("nditer([x, None])", r"cupy has no 'nditer'.*xdev\.to_numpy\(x\)"),
        ("fmin.reduce(x)", r"cupy has no 'fmin\.reduce'.*xdev\.to_numpy\(x\)"),
        ("logaddexp2.accumulate(x)", r"no 'logaddexp2\.acc.*xdev\.to_numpy\(x\)"),
        ("random.permutation(x)", "draws on the host.*default_rng"),
        ("random.default_rng(1).normal(x)", r"default_rng\(seed\)\.normal"),
        ("random.default_rng(1).multivariate_normal(x, x)", r"xdev\.to_numpy\(x\)$"),
    ],
)
def test_what_cupy_lacks_says_which_copy_would_do(written, text):
    names = {"np": xdev.numpy, "x": xdev.ones(3, device="fake")}
    with pytest.raises(TypeError, match=text) as told:
        eval(f"np.{written}", names)  # noqa: S307 - the list above
    assert told.value.__cause__ is None  # no lookup of xdev's own


def test_numpys_assertions_take_arrays_of_any_device(device):
    np = xdev.numpy
    x = xdev.asarray([1.0, 2.0], device=device)

    np.testing.assert_allclose(x, [1, 2 + 1e-9])
    np.testing.assert_array_equal(x, x)
    np.testing.assert_equal([x, 1], [numpy.array([1.0, 2.0]), 1])
    with pytest.raises(AssertionError):
        np.testing.assert_array_less(x, x)


def test_names_pickle_and_are_listed():
    np = xdev.numpy

    for thing in (np.add, np.abs, np.hstack, np.linalg.norm, np.fft.rfft):
        assert pickled(thing) is thing
    assert {"hstack", "pi", "float32", "linalg"} <= {*dir(np)}
    assert "norm" in dir(np.linalg)
    assert "default_rng" in dir(np.random)
    assert np.hstack.__doc__ == numpy.hstack.__doc__
    namespace = {}
    exec("from xdev.numpy import *", namespace)  # noqa: S102 - what a program does
    assert namespace["sin"] is np.sin


def test_a_misspelt_name_is_said_to_be_none_of_these():
    with pytest.raises(
        AttributeError, match=r"'?xdev\.numpy'? has no attribute 'sine'"
    ):
        _ = xdev.numpy.sine
    with pytest.raises(AttributeError, match=r"xdev\.numpy\.linalg"):
        _ = xdev.numpy.linalg.sine
