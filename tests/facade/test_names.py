"""The facade's names, signatures, arguments by place and docstrings."""

import inspect
import operator
import re
from pathlib import Path
from types import FunctionType

import array_api_strict
import numpy as np
import pytest
from running import pickled, there

import xdev
from xdev import facade
from xdev.ufunc import Ufunc


def functions(module, names, room=""):
    return {
        f"{room}{name}": function
        for name in names
        if isinstance(function := getattr(module, name), FunctionType | Ufunc)
    }


LINALG = [*array_api_strict.linalg.__all__, "eig", "eigvals"]  # which it leaves out
STRICT = {
    name: function
    for name, function in functions(array_api_strict, array_api_strict.__all__).items()
    if not name.endswith("_array_api_strict_flags")
}
STRICT |= functions(array_api_strict.linalg, LINALG, "linalg.")
STRICT |= functions(array_api_strict.fft, array_api_strict.fft.__all__, "fft.")
TYPED = Path(__file__).parents[1] / "typing" / "facade_types.py"
ELEMENTWISE = facade.elementwise.__all__
UFUNCS = sorted(set(ELEMENTWISE) - {"clip"})


FUNCTIONS = functions(xdev, facade.__all__)
FUNCTIONS |= functions(xdev.linalg, xdev.linalg.__all__, "linalg.")
FUNCTIONS |= functions(xdev.fft, xdev.fft.__all__, "fft.")


@pytest.mark.parametrize("path", sorted(STRICT))
def test_signature_is_the_standards(path):
    wanted = inspect.signature(STRICT[path]).parameters.values()
    given = list(inspect.signature(lookup(path)).parameters.values())

    given = [one for one in given if one.kind is not one.VAR_KEYWORD]  # for the text
    if path in UFUNCS:
        while given[-1].name != "out":
            assert given.pop().kind is inspect.Parameter.KEYWORD_ONLY
    if path in ELEMENTWISE:
        assert given.pop().name == "out"
    if any(one.kind is one.KEYWORD_ONLY for one in given) and path != "meshgrid":
        given = [one for one in given if one.name != "more"]  # for the error's text
    given = [one for one in given if one.name != "chunks"]  # for Dask's collections
    for one, other in zip(given, wanted, strict=True):
        # By place may go, besides, what does so in NumPy: test_by_place.
        assert one.kind is other.kind or (
            one.kind is one.POSITIONAL_OR_KEYWORD and other.kind is other.KEYWORD_ONLY
        )
        if one.kind is not one.POSITIONAL_ONLY:
            assert one.name == other.name
        # The reference marks "not given" in its own way where None means more.
        marked = type(other.default).__name__ == "Undef"
        assert one.default == (None if marked else other.default)


def test_every_name_of_the_standard_is_there():
    assert set(FUNCTIONS) >= set(STRICT)
    assert xdev.__array_api_version__ == "2025.12"
    for name in ("e", "inf", "nan", "newaxis", "pi", "bool", "complex128", "uint8"):
        assert name in facade.__all__


def test_types_are_checked_by_mypy_for_every_name():
    checked = re.findall(r"\bxp\.([\w.]+)", TYPED.read_text())
    assert set(FUNCTIONS) - {"namespace"} <= set(checked)


@pytest.mark.parametrize("path", UFUNCS)
def test_elementwise_functions_are_ufuncs(path):
    function = FUNCTIONS[path]

    assert type(function) is type(xdev.vectorize(lambda x: x))
    assert function.__name__ == path
    assert pickled(function) is function
    assert inspect.signature(function).parameters["out"].default is None


X = np.asarray([[3.0, 1.0, 2.0], [2.0, 2.0, 9.0], [0.0, 4.0, 1.0]])
V = np.asarray([1.0, 2.0, 2.0, 5.0])
Z = X + 1j
ALONG = ["all", "any", "argmax", "argsort", "flip", "max", "mean", "min", "sort"]
LINE, PLANE = (2, 0, "ortho"), ((2, 2), (0, 1), "forward")
#: By name: the arguments that always went by place, then those that NumPy has so too.
CALLS = {
    **dict.fromkeys(ALONG, ((X,), (0,))),
    **dict.fromkeys(["argmin", "count_nonzero", "std", "tril", "var"], ((X,), (1,))),
    **dict.fromkeys(["empty_like", "ones_like", "zeros_like"], ((X,), (np.int8,))),
    **dict.fromkeys(["empty", "ones", "zeros"], ((3,), (np.float32,))),
    **dict.fromkeys(["prod", "sum"], ((X,), (0, np.float32))),
    **dict.fromkeys(["fft.fftshift", "fft.ifftshift"], ((X,), (0,))),
    **dict.fromkeys(["fft.fftfreq", "fft.rfftfreq"], ((5,), (0.5,))),
    **dict.fromkeys(["fft.fft", "fft.ifft", "fft.irfft", "fft.hfft"], ((Z,), LINE)),
    **dict.fromkeys(["fft.rfft", "fft.ihfft"], ((X,), LINE)),
    **dict.fromkeys(["fft.fftn", "fft.ifftn", "fft.irfftn"], ((Z,), PLANE)),
    "fft.rfftn": ((X,), PLANE),
    "arange": ((2, 9, 3), (np.float32,)),
    "asarray": (([1, 2],), (np.float32,)),
    "concat": (([X, X],), (1,)),
    "eye": ((2, 3), (1, np.float32)),
    "full": ((2, 1), (np.float32,)),
    "full_like": ((X, 7), (np.int16,)),
    "repeat": ((X, 2), (1,)),
    "roll": ((X, 1), (0,)),
    "searchsorted": ((V, V), ("right", np.arange(4))),
    "stack": (([X, X],), (1,)),
    "take": ((X, np.asarray([2, 0])), (1,)),
    "take_along_axis": ((X, np.asarray([[2], [0], [1]])), (1,)),
    "tensordot": ((X, X), (1,)),
    "triu": ((X,), (-1,)),
    "linalg.pinv": ((X,), (1e-10,)),
    "linalg.qr": ((X[:, :2],), ("complete",)),
    "linalg.svd": ((X[:2],), (False,)),
}
#: NumPy's parameters that mean what the standard's of another name do.
RENAMED = {"rcond": "rtol"}
#: Where NumPy's signature does not show what it takes by place, as CALLS does.
UNSHOWN = {"arange": ["dtype"]}


def lookup(path, module=xdev):
    return operator.attrgetter(path)(module)


def kinds(function, *wanted):
    parameters = inspect.signature(function).parameters.values()
    return [x.name for x in parameters if x.kind in wanted]


def by_place(function):
    one = inspect.Parameter
    return kinds(function, one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)


def by_keyword(function):
    return kinds(function, inspect.Parameter.KEYWORD_ONLY)


def reference(path):
    """Return the function with the standard's signature: ours if it is newer."""
    try:
        return lookup(path, array_api_strict)
    except AttributeError:
        return lookup(path)


OPTIONS = [
    path
    for path, function in FUNCTIONS.items()
    if inspect.isfunction(function)
    and by_keyword(reference(path))
    and path not in ("meshgrid", "linalg.tensordot", "linalg.vecdot")
]


def results(result):
    many = result if isinstance(result, tuple) else (result,)
    return [xdev.to_numpy(x) if hasattr(x, "dtype") else np.asarray(x) for x in many]


@pytest.mark.filterwarnings("ignore:`axes`:DeprecationWarning")
@pytest.mark.parametrize("path", CALLS)
def test_by_place_by_keyword_and_numpys_are_the_same(device, path):
    function, numpys = lookup(path), lookup(path, np)
    args, more = CALLS[path]
    names = by_place(function)[len(args) : len(args) + len(more)]
    mine, extras = there(device, *args), there(device, *more)
    for count in range(1, len(more) + 1):
        options = dict(list(zip(names, extras, strict=True))[:count])
        with xdev.use_device(device):
            placed = results(function(*mine, *extras[:count]))
            named = results(function(*mine, **options))
        wanted = results(numpys(*args, *more[:count]))
        for one, other, third in zip(placed, named, wanted, strict=True):
            assert (one.dtype, one.shape) == (third.dtype, third.shape)
            if "empty" in path:
                continue
            np.testing.assert_array_equal(one, other, strict=True)
            if device == "cuda" and path in ("linalg.qr", "linalg.svd"):
                continue  # the signs are free
            near = 1e-6 if device == "cuda" else 0
            np.testing.assert_allclose(one, third, rtol=near, atol=near)


@pytest.mark.parametrize("path", OPTIONS)
def test_as_many_go_by_place_as_numpy_and_the_standard_agree_on(path):
    standard, numpys = reference(path), by_place(lookup(path, np))
    always = len(by_place(standard))
    agreed = []
    for name, numpy_name in zip(by_keyword(standard), numpys[always:], strict=False):
        if RENAMED.get(numpy_name, numpy_name) != name:
            break
        agreed.append(name)
    agreed += UNSHOWN.get(path, [])

    assert by_place(lookup(path))[always:] == agreed
    assert len(CALLS.get(path, ((), ()))[1]) == len(agreed), "each is tested above"
