"""array-api-extra, SciPy and scikit-learn on each device; programs of the page."""

import re
from pathlib import Path

import numpy as np
import pytest

import xdev

RNG = np.random.default_rng(0)
A = RNG.standard_normal((6, 5))
V = RNG.random(12)
GAPS = np.asarray([1.0, np.nan, np.inf, -np.inf, 0.5])
HOLES = np.where(A > 1, np.nan, A)
I = RNG.integers(0, 5, 10)
PAIR = np.asarray([1, 2])

#: Calls of array-api-extra's functions, on arrays of the device and in ``xp``.
CALLS = """
angle(V + 1j, xp=xp)
apply_where(A > 0, (A, A + 1), lambda x, y: x * y, fill_value=7.0, xp=xp)
apply_where(A > 0, A, xp.log, xp.exp, xp=xp)
argpartition(V, 3, xp=xp)[3]
at(V, np.s_[2:5]).set(0.0, xp=xp)
at(V)[1:3].add(5.0, copy=True, xp=xp)
at(A, A > 0).set(9.0, xp=xp)
at(V)[1:].min(0.5, xp=xp)
atleast_nd(V, ndim=3, xp=xp)
cov(A, xp=xp)
create_diagonal(V, offset=1, xp=xp)
deg2rad(A, xp=xp)
isclose(A, A + 1e-9, xp=xp)
isin(I, PAIR, xp=xp)
kron(A, A[:2, ...], xp=xp)
lazy_apply(xp.sin, A, xp=xp)
nan_to_num(GAPS, fill_value=3.0, xp=xp)
nanmax(HOLES, axis=0, xp=xp)
nanmean(HOLES, axis=0, xp=xp)
nanmin(HOLES, axis=0, xp=xp)
nansum(HOLES, xp=xp)
nunique(I, xp=xp)
one_hot(I, 5, xp=xp)
pad(A, [(1, 2), (0, 1)], constant_values=1.0, xp=xp)
partition(V, 3, xp=xp)[3]
rad2deg(A, xp=xp)
searchsorted(xp.sort(V), V[:4], side="right", xp=xp)
searchsorted(xp.sort(A), A[:, :2], xp=xp)
setdiff1d(I, PAIR, xp=xp)
sinc(A, xp=xp)
union1d(I, I + 2, xp=xp)
unravel_index(I, (2, 5), xp=xp)
default_dtype(xp)
diag_indices(4, ndim=3, xp=xp)
tril_indices(4, offset=1, m=5, xp=xp)
triu_indices(4, xp=xp)
""".strip().splitlines()
NAMES = {"A": A, "V": V, "GAPS": GAPS, "HOLES": HOLES, "I": I, "PAIR": PAIR}


@pytest.fixture
def extra(imported):
    return imported("array_api_extra")


def test_every_function_is_called(extra):
    called = {re.match(r"\w+", call)[0] for call in CALLS}
    # The standard has them now; there they are deprecated.
    others = {"__version__", "testing", "broadcast_shapes", "expand_dims"}

    assert called == set(extra.__all__) - others


@pytest.mark.parametrize("call", CALLS)
def test_results_are_numpys_on_the_device(extra, device, call):
    def results(xp, names):
        result = eval(f"extra.{call}", {"extra": extra, "xp": xp, "np": np, **names})  # noqa: S307
        return result if isinstance(result, tuple) else (result,)

    own = {name: x.copy() for name, x in NAMES.items()}  # some write in place
    there = {name: xdev.asarray(x, device=device, copy=True) for name, x in own.items()}
    with xdev.use_device(device):  # where a call makes arrays of numbers
        found = results(xdev, there)
    for one, other in zip(found, results(np, own), strict=True):
        if not hasattr(other, "dtype"):
            assert one == other
            continue
        assert xdev.device_of(one) == device
        assert one.dtype == other.dtype
        np.testing.assert_allclose(xdev.to_numpy(one), other, rtol=1e-12, atol=1e-12)


def test_host_functions_are_applied_where_arrays_are_on_the_host(extra):
    def apply(x):
        return extra.lazy_apply(
            np.cumsum, x, shape=x.shape, dtype=x.dtype, as_numpy=True, xp=xdev
        )

    np.testing.assert_array_equal(apply(V), np.cumsum(V))
    with pytest.raises(TypeError, match=r"does not turn.*xdev\.to_numpy\(x\)"):
        apply(xdev.asarray(V, device="fake"))


@pytest.mark.parametrize("library", ["scipy", "sklearn"])
def test_results_are_numpys_in_the_devices_arrays(
    imported, device, library, differences
):
    imported(library)
    assert differences(library, device) == {}


PAGE = Path(__file__).parents[2] / "docs" / "interop.md"
PROGRAM = re.compile(r"^## ([^\n]+)\n\n```python\n(.*?)```", re.MULTILINE | re.DOTALL)
PROGRAMS = dict(PROGRAM.findall(PAGE.read_text()))
MODULES = {"PyTorch": "torch", "scikit-learn": "sklearn"}


def test_every_section_has_a_program():
    headings = re.findall(r"^## (.+)", PAGE.read_text(), re.MULTILINE)

    assert list(PROGRAMS) == headings


@pytest.mark.parametrize("library", PROGRAMS)
def test_programs_run(imported, python, tmp_path, library):
    name = library.lower().replace("-", "_")
    imported(MODULES.get(library, name))

    program = tmp_path / "program.py"
    program.write_text(PROGRAMS[library])

    done = python(program, XDEV_DEVICE="cpu")
    assert not done.returncode, done.stderr
