"""NumPy's names that xdev lacks: the error names what gives the same result."""

import io
import itertools
import operator
import re
from pathlib import Path

import numpy as np
import pytest
from running import same, there

import xdev

PAGE = Path(xdev.__file__).parents[1] / "docs" / "coming-from" / "numpy.md"
TABLE = PAGE.read_text(encoding="utf-8").partition("\n## Names\n")[2]
#: What does the same here, by NumPy's call and a remark.
SAME = {
    call + remark: own
    for call, remark, own in re.findall(
        r"^\| `(.*?)`(.*?) \| `(.*)` \|$", TABLE, re.MULTILINE
    )
}
DTYPES = ("float64", "float32", "int64", "complex128")
HOST_DTYPES = ("bool", "int8", "uint8", "float16")
ROOMS = {
    "": (np, xdev),
    "linalg.": (np.linalg, xdev.linalg),
    "fft.": (np.fft, xdev.fft),
}
LACKING = [
    f"{room}{name}"
    for room, (numpys, own) in ROOMS.items()
    for name in dir(numpys)
    if not name.startswith("_") and name not in own.__all__
]


def array(ndim, dtype, seed, *, nan):
    """Return an array with zeros, negative and equal values, and NaN if asked for."""
    rng = np.random.default_rng(seed)
    values = rng.integers(0 if dtype == "uint8" else -2, 3, (3,) * ndim)
    if np.dtype(dtype).kind in "fc":
        values = values + rng.integers(0, 4, values.shape) / 4
    if np.dtype(dtype).kind == "c":
        values = values + 1j * (rng.integers(-2, 3, values.shape) + 0.25)
    values = values.astype(dtype)
    if nan:
        values.flat[1] = np.nan
    return values


def cases(call, remark, device):
    """Yield the arguments of a call, for arrays of one to three axes."""
    dtypes = DTYPES + (HOST_DTYPES if device == "cpu" else ())
    if remark == " of floats":
        dtypes = [dtype for dtype in dtypes if np.dtype(dtype).kind == "f"]
    for ndim, other, dtype in itertools.product((1, 2, 3), (1, 2, 3), dtypes):
        nan = call.startswith("nan")
        x, y = array(ndim, dtype, 1, nan=nan), array(other, dtype, 2, nan=nan)
        y[y == 0] = 1  # devices may differ in what they divide by zero to
        yield {
            "x": x, "y": y, "arrays": [x, array(ndim, dtype, 3, nan=nan), x],
            "mask": array(ndim, "bool", 4, nan=False),
            "axes": (1, 2, 0)[:ndim] if ndim == 3 else tuple(range(ndim))[::-1],
            "axis": ndim - 1, "i": ndim - 1, "j": 0, "n": 4, "ord": 1, "start": -1.0,
            "stop": 3.0, "dtype": np.dtype(dtype), "other": np.dtype("int16"),
        }  # fmt: skip


@pytest.mark.parametrize("row", SAME)
@pytest.mark.filterwarnings("ignore:invalid value", "ignore:divide by zero")
@pytest.mark.filterwarnings("ignore:overflow", "ignore:Casting complex")
@pytest.mark.filterwarnings("ignore:numpy.* deprecated:DeprecationWarning")
def test_both_sides_of_a_row_give_the_same(device, row):
    call, remark = re.fullmatch(r"([^ ]+\(.*\))(.*)", row).groups()
    compared = set()
    for case in cases(call, remark, device):
        try:
            numpys = eval(f"np.{call}", {"np": np, **case})  # noqa: S307 - the table's
        except (TypeError, ValueError, IndexError, np.linalg.LinAlgError):
            continue  # NumPy's has none of this shape or data type
        if call.startswith("swapaxes") and case["i"] == case["j"]:
            continue  # nothing to do
        scope = dict(zip(case, there(device, *case.values()), strict=True))
        with xdev.use_device(device):
            own = eval(SAME[row], {"xp": xdev, **scope})  # noqa: S307 - the table's
        short = case["x"].dtype in (np.float32, np.float16)
        if isinstance(numpys, int | np.bool) or call == "shape(x)":
            assert own == numpys
        else:
            same(own, numpys, *(1e-3 if short else 1e-12,) * 2)
        compared.add(case["x"].ndim)

    assert compared, "no case was compared"


@pytest.mark.parametrize("path", LACKING)
def test_every_public_name_of_numpy_is_answered(path):
    room, _, name = path.rpartition(".")
    module = getattr(xdev, room) if room else xdev

    with pytest.raises(AttributeError, match=r"\(NumPy's\): .*use ") as caught:
        getattr(module, name)
    text = str(caught.value)
    assert text.startswith(f"{module.__name__} has no '{name}' (NumPy's): ")
    assert "xp." not in text
    for found in re.findall(r"xdev((?:\.\w+)+)", text.partition(": ")[2]):
        assert operator.attrgetter(found.strip("."))(xdev) is not None


@pytest.mark.parametrize(
    "name", [name for name, x in vars(np).items() if x in np.sctypeDict.values()]
)
def test_numpys_data_types_are_the_same_here(name):
    if name in xdev.__all__:
        return
    with pytest.raises(AttributeError) as caught:
        getattr(xdev, name)
    told = re.search(r"use xdev\.([\w.]+)$", str(caught.value))[1]
    assert np.dtype(operator.attrgetter(told)(xdev)) == np.dtype(getattr(np, name))
    assert told in xdev.__all__ or np.dtype(getattr(np, name)).name not in xdev.__all__


@pytest.mark.parametrize("room", ["random", "testing"])
def test_names_of_random_numbers_and_tests_are_answered(room):
    own, numpys = getattr(xdev, room), getattr(xdev.numpy, room)
    public = {name for name in dir(getattr(np, room)) if not name.startswith("_")}
    if room == "testing":
        public = {name for name in np.testing.__all__ if name.startswith("assert_")}
    for name in public - {*own.__all__}:
        with pytest.raises(AttributeError, match=r"\(NumPy's\): ") as caught:
            getattr(own, name)
        told = str(caught.value)
        if name == "seed":  # NumPy's is of another state than the generators here
            assert told.endswith("use xdev.random.default_rng(seed), and its methods")
            continue
        assert f"use xdev.numpy.{room}.{name}" in told
        assert hasattr(numpys, name)
        drawn = re.search(r"default_rng\(seed\)\.(\w+)", told)
        assert drawn is None or hasattr(xdev.random.Generator, drawn[1])
    with pytest.raises(AttributeError, match=rf"^module 'xdev\.{room}' has no "):
        _ = own.nothing


CUPYS = ["ElementwiseKernel", "RawKernel", "asnumpy", "fuse", "get_array_module"]


@pytest.mark.parametrize("name", CUPYS)
def test_cupys_names_are_answered(name):
    with pytest.raises(AttributeError, match=rf"no '{name}' \(CuPy's\): use ") as it:
        getattr(xdev, name)
    for found in re.findall(r"xdev((?:\.\w+)+)", str(it.value).partition(": ")[2]):
        assert operator.attrgetter(found.strip("."))(xdev) is not None


@pytest.mark.parametrize(
    ("expression", "told"),
    [
        ("concatt", "Did you mean: 'concat'?"),
        ("linalg.slogdett", "Did you mean: 'slogdet'?"),
        ("fft.fftfrek", "Did you mean: 'fftfreq'?"),
        ("_nothing", "module 'xdev' has no attribute '_nothing'"),
        ("hstack", "xdev.concat(arrays, axis=0 if"),
    ],
)
def test_a_misspelt_name_is_pythons_to_answer(python, expression, told):
    done = python("-c", f"import xdev; xdev.{expression}")
    assert told in done.stderr
    assert ("Did you mean" in done.stderr) == ("Did you mean" in told)


def test_a_missing_name_does_not_load_a_room(printed):
    code = (
        "import sys, xdev; hasattr(xdev, 'median'); print('xdev.memory' in sys.modules)"
    )
    assert printed(code) == "False\n"


@pytest.mark.parametrize("row", SAME)
def test_the_error_says_what_the_table_of_the_docs_says(row):
    room, name = re.match(r"(?:(\w+)\.)?(\w+)\(", row).groups()
    module = getattr(xdev, room) if room else xdev
    with pytest.raises(AttributeError) as caught:
        getattr(module, name)
    assert SAME[row].replace("xp.", "xdev.") in str(caught.value)


@pytest.mark.fake
@pytest.mark.parametrize(
    ("function", "told"),
    [
        (np.sum, "use xdev.sum, or"),
        (np.fft.fft2, "use xdev.numpy.fft.fft2, or"),
        (np.linalg.norm, "for linalg.norm(x) use xdev.linalg.vector_norm(x), "),
        (np.absolute, "for absolute(x) use xdev.abs(x), or"),
        (np.median, "use xdev.numpy.median, or"),
        (lambda x: np.concatenate([x, x]), "for concatenate(arrays, axis=0) "),
        (lambda x: np.save(io.BytesIO(), x), "use xdev.numpy.save, or"),
    ],
)
def test_of_a_fake_array_the_text_names_what_xdev_has(function, told):
    with pytest.raises(TypeError, match=r"NumPy's.*on fake:0: ") as caught:
        function(xdev.asarray(np.eye(3), device="fake"))
    text = str(caught.value).partition("on fake:0: ")[2]
    assert text.startswith(told)
    assert text.endswith("copy it with xdev.to_numpy(x) first")


@pytest.mark.fake
@pytest.mark.parametrize("room", ["", ".linalg"])
def test_a_name_that_the_fakes_library_lacks_is_told_as_its_own(room):
    library = xdev.namespace(xdev.ones(3, device="fake"))
    library = library.linalg if room else library
    for name in ("asnumpy", "nothing", "__nothing__"):
        with pytest.raises(AttributeError, match=rf"^xdev\.fake{room} has no '"):
            getattr(library, name)
