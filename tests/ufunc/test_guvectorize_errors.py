"""Wrong generalized ufuncs and wrong calls are refused, and write nothing."""

import numpy as np
import pytest

import xdev


@xdev.guvectorize("(n),(n)->()")
def dot(x, y, out):
    out[0] = 0
    for i in range(x.shape[0]):
        out[0] += x[i] * y[i]


def copied(x, out):
    for i in range(x.shape[0]):
        out[i] = x[i]


@pytest.mark.parametrize(
    "layout",
    ["", "n->n", "(n)", "(n),->(n)", "(n)->", "(n)->(n", "(2n)->()", "(n?)->()", 3],
)
def test_wrong_layouts_are_refused(layout):
    with pytest.raises(TypeError, match="is not a layout of core dimensions"):
        xdev.guvectorize(layout)


@pytest.mark.parametrize(
    ("signature", "message"),
    [
        ("float32", "is not a signature"),
        (7, "is not a signature"),
        ("void(float32[:])", "has 1 types, but"),
        ("void(text[:], float32[:])", "no type 'text'"),
        ("void(float32[x], float32[:])", "is not a type"),
        ("void(float32, float32[:])", "is an array of 1 axes"),
        ("void(float32[:,:], float32[:])", "is an array of 1 axes"),
        ("void(float32[:], float32)", "is an array of 1 axes"),
    ],
)
def test_wrong_signatures_are_refused(signature, message):
    with pytest.raises(TypeError, match=message):
        xdev.guvectorize([signature], "(n)->(n)")(copied)


def test_wrong_options_are_refused():
    with pytest.raises(ValueError, match="no target 'gpu'"):
        xdev.guvectorize("(n)->(n)", target="gpu")
    with pytest.raises(TypeError, match="no option 'speed'"):
        xdev.guvectorize("(n)->(n)", speed=True)
    with pytest.raises(TypeError, match="nopython=False"):
        xdev.guvectorize("(n)->(n)", nopython=False)
    with pytest.raises(TypeError, match="needs core dimensions"):
        xdev.guvectorize(copied)


@pytest.mark.parametrize("layout", ["(n)->()", "(n),(n)->(n)"])
def test_the_number_of_parameters_is_that_of_operands(layout):
    def three(x, y, z, out):
        out[0] = x[0] + y[0] + z[0]

    with pytest.raises(TypeError, match="has 4 parameters, but"):
        xdev.guvectorize(layout)(three)


@pytest.fixture
def pair(device):
    return (
        xdev.asarray(np.arange(6.0).reshape(2, 3), device=device),
        xdev.asarray(np.arange(3.0), device=device),
    )


def test_a_wrong_number_of_arguments_is_refused(pair):
    x, y = pair
    for args in [(x,), (x, y, y, y), ()]:
        with pytest.raises(TypeError, match="takes 2 inputs and then up to 1 outputs"):
            dot(*args)
    with pytest.raises(TypeError, match="out once"):
        dot(x, y, y, out=y)
    with pytest.raises(ValueError, match="has 1 outputs, but out has 2"):
        dot(x, y, out=(y, y))
    with pytest.raises(TypeError, match="has no keyword 'where'"):
        dot(x, y, where=True)


@xdev.guvectorize("(n),()->(n)")
def scaled(x, factor, out):
    for i in range(x.shape[0]):
        out[i] = x[i] * factor


def test_an_int_that_does_not_fit_is_named(device):
    x = xdev.asarray(np.arange(6, dtype="u1"), device=device)

    with pytest.raises(OverflowError, match="scaled: factor is 300, which uint8"):
        scaled(x, 300)


def test_shapes_that_do_not_fit_are_refused(pair):
    x, y = pair
    with pytest.raises(ValueError, match=r"core dimension n of \(n\),\(n\)->\(\)"):
        dot(x, y[:2])
    with pytest.raises(ValueError, match="lacks core dimensions"):
        dot(x, 1.0)
    with pytest.raises(ValueError, match="broadcast"):
        dot(x, xdev.stack([y] * 3))


def test_an_unknown_core_dimension_needs_an_out(pair):
    @xdev.guvectorize("(n)->(m)")
    def repeated(x, out):
        for i in range(out.shape[0]):
            out[i] = x[i % x.shape[0]]

    _, y = pair
    with pytest.raises(ValueError, match="no input has the core dimension m"):
        repeated(y)
    out = xdev.concat([y, y])
    assert repeated(y + 1, out=out) is out
    assert xdev.to_numpy(out).tolist() == [1, 2, 3, 1, 2, 3]


def test_a_wrong_out_is_refused_and_not_written(pair):
    x, y = pair
    out = xdev.zeros_like(y)
    with pytest.raises(ValueError, match=r"broadcast|shape"):
        dot(x, y, out=out)
    with pytest.raises(TypeError):
        dot(x, y, out=[0.0, 0.0])
    assert not xdev.to_numpy(out).any()


def test_a_read_only_out_is_refused():
    out = np.zeros(2)
    out.flags.writeable = False

    with pytest.raises(ValueError, match="read-only"):
        dot(np.ones((2, 3)), np.ones(3), out=out)


def test_wrong_axes_are_refused(pair):
    x, _ = pair
    for keywords in [
        {"axis": 5},
        {"axes": [(0,), (7,)]},
        {"axes": 0},
        {"axes": [(0, 1), (0,)]},
        {"axis": 0, "axes": [(0,), (0,)]},
    ]:
        with pytest.raises((TypeError, ValueError)):
            dot(x, x, **keywords)


def test_devices_do_not_mix(device, pair):
    x, y = pair
    if device == "cpu":
        pytest.skip("both are the host's")
    with pytest.raises(xdev.DeviceMismatchError):
        dot(x, np.ones(3))
    with pytest.raises(xdev.DeviceMismatchError):
        dot(x, y, out=np.ones(2))


@pytest.mark.parametrize("dtype", ["O", "f2", "M8[s]"])
def test_dtypes_that_it_does_not_have_are_refused(dtype):
    x = np.zeros(3, dtype)
    with pytest.raises(TypeError, match=r"dot: dtype .* is not supported"):
        dot(x, x, out=np.zeros((), dtype))


def test_a_signature_that_fits_nothing_is_named(device):
    made = xdev.guvectorize(["void(float32[:], float32[:])"], "(n)->(n)")(copied)

    with pytest.raises(TypeError, match=r"no signature takes .float64. safely"):
        made(xdev.zeros(3, device=device))


def test_a_function_that_cannot_be_compiled_shows_types_and_line(device):
    @xdev.guvectorize("(n)->()")
    def broken(x, out):
        out[0] = x[0].nothing_like_that

    with pytest.raises(TypeError) as caught:
        broken(xdev.zeros(3, device=device))

    text = str(caught.value)
    assert text.startswith("cannot compile broken(float64[:], float64[:])")
    assert "out[0] = x[0].nothing_like_that" in text


def test_arrays_from_outside_are_refused(device):
    table = xdev.zeros(3, device=device)
    if device == "fake":
        pytest.skip("compilers know no fake arrays")

    @xdev.guvectorize("(n)->()")
    def reading(x, out):
        out[0] = table[0] + x[0]

    with pytest.raises(TypeError, match="reads the array 'table' from outside"):
        reading(table)


@xdev.guvectorize("(n)->(n)")
def halved(x, out):
    for k in range(x.size):
        out[k] = x[k] / 2


@pytest.mark.parametrize(
    ("taken", "given"), [("d", "i8"), ("f", "?"), ("i8", "?"), ("i4", "u4")]
)
def test_outputs_that_would_cut_results_are_refused_as_numpy_refuses(
    device, taken, given
):
    x = xdev.asarray(np.arange(4).astype(taken), device=device)
    out = xdev.asarray(np.full(4, 7).astype(given), device=device)
    before = xdev.to_numpy(out)
    with pytest.raises(TypeError, match="casting rule 'same_kind'"):
        np.add(np.ones(4, taken), np.ones(4, taken), out=np.ones(4, given))

    with pytest.raises(
        TypeError, match=r"'halved' output from.*'same_kind': pass out="
    ):
        halved(x, out=out)
    np.testing.assert_array_equal(xdev.to_numpy(out), before)

    for way in ({"casting": "unsafe"}, {"dtype": given}):
        assert halved(x, out=out, **way) is out
        expected = (np.arange(4) / 2).astype(given)
        np.testing.assert_array_equal(xdev.to_numpy(out), expected)


def test_outputs_of_the_same_kind_are_written(device):
    x = xdev.asarray(np.arange(4.0), device=device)
    out = xdev.zeros(4, dtype=xdev.float32, device=device)

    assert halved(x, out=out) is out
    assert xdev.to_numpy(out).tolist() == [0, 0.5, 1, 1.5]
    with pytest.raises(TypeError, match="casting rule 'safe'"):
        halved(x, out=out, casting="safe")


TYPES = ["void(int64[:], int64[:])", "void(float64[:], float64[:])"]


@pytest.fixture(scope="module")
def typed():
    numba = pytest.importorskip("numba")
    vectorizers = xdev.guvectorize, numba.guvectorize
    return [guvectorize(TYPES, "(n)->(n)")(copied) for guvectorize in vectorizers]


@pytest.mark.parametrize("casting", ["no", "safe", "same_kind", "unsafe"])
@pytest.mark.parametrize("asked", ["d", "l", "f"])
@pytest.mark.parametrize("char", "lhfd")
def test_typings_obey_dtype_and_casting_as_numbas(device, char, asked, casting, typed):
    ours, theirs = typed
    x, keywords = np.arange(4).astype(char), {"dtype": asked, "casting": casting}
    given = xdev.asarray(x, device=device)

    if asked == "f":
        with pytest.raises(TypeError, match="no signature gives float32; it has int64"):
            ours(given, **keywords)
    elif np.can_cast(x.dtype, asked, casting):
        expected, made = theirs(x, **keywords), ours(given, **keywords)
        assert made.dtype == expected.dtype
        np.testing.assert_array_equal(xdev.to_numpy(made), expected)
    else:
        with pytest.raises(TypeError, match="with casting"):
            ours(given, **keywords)


def test_of_typings_that_give_dtype_the_first_that_takes_the_inputs_serves(device):
    types = [
        "void(float32[:], float64[:])",
        "void(complex128[:], float64[:])",
        "void(float64[:], float64[:])",
    ]
    made = xdev.guvectorize(types, "(n)->(n)")(real_part)
    x = xdev.asarray(np.full(3, 1 + 2**-40), device=device)

    assert xdev.to_numpy(made(x, dtype="d")).tolist() == [1 + 2**-40] * 3
    with pytest.raises(TypeError, match="no signature gives int64"):
        made(x, dtype=int)


def real_part(x, out):
    for i in range(x.shape[0]):
        out[i] = x[i].real
