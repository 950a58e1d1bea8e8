"""array-api-extra, SciPy and scikit-learn on each device; programs of the page."""

import re
from functools import partial
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

CALLS = {
    "angle": lambda extra, put, xp: extra.angle(put(V + 1j), xp=xp),
    "apply_where": lambda extra, put, xp: extra.apply_where(
        put(A > 0), (put(A), put(A + 1)), lambda x, y: x * y, fill_value=7.0, xp=xp
    ),
    "apply_where, two functions": lambda extra, put, xp: extra.apply_where(
        put(A > 0), put(A), xp.log, xp.exp, xp=xp
    ),
    "argpartition": lambda extra, put, xp: xp.sort(
        xp.take(put(V), extra.argpartition(put(V), 3, xp=xp)[:3])
    ),
    "at set": lambda extra, put, xp: extra.at(put(V), np.s_[2:5]).set(0.0, xp=xp),
    "at add": lambda extra, put, xp: extra.at(put(V))[1:3].add(5.0, copy=True, xp=xp),
    "at mask": lambda extra, put, xp: extra.at(put(A), put(A > 0)).set(9.0, xp=xp),
    "at min": lambda extra, put, xp: extra.at(put(V))[1:].min(0.5, xp=xp),
    "atleast_nd": lambda extra, put, xp: extra.atleast_nd(put(V), ndim=3, xp=xp),
    "cov": lambda extra, put, xp: extra.cov(put(A), xp=xp),
    "create_diagonal": lambda extra, put, xp: extra.create_diagonal(
        put(V), offset=1, xp=xp
    ),
    "deg2rad": lambda extra, put, xp: extra.deg2rad(put(A), xp=xp),
    "isclose": lambda extra, put, xp: extra.isclose(put(A), put(A + 1e-9), xp=xp),
    "isin": lambda extra, put, xp: extra.isin(put(I), put(PAIR), xp=xp),
    "kron": lambda extra, put, xp: extra.kron(put(A), put(A[:2]), xp=xp),
    "lazy_apply": lambda extra, put, xp: extra.lazy_apply(xp.sin, put(A), xp=xp),
    "nan_to_num": lambda extra, put, xp: extra.nan_to_num(
        put(GAPS), fill_value=3.0, xp=xp
    ),
    "nanmax": lambda extra, put, xp: extra.nanmax(put(HOLES), axis=0, xp=xp),
    "nanmean": lambda extra, put, xp: extra.nanmean(put(HOLES), axis=0, xp=xp),
    "nanmin": lambda extra, put, xp: extra.nanmin(put(HOLES), axis=0, xp=xp),
    "nansum": lambda extra, put, xp: extra.nansum(put(HOLES), xp=xp),
    "nunique": lambda extra, put, xp: extra.nunique(put(I), xp=xp),
    "one_hot": lambda extra, put, xp: extra.one_hot(put(I), 5, xp=xp),
    "pad": lambda extra, put, xp: extra.pad(
        put(A), [(1, 2), (0, 1)], constant_values=1.0, xp=xp
    ),
    "partition": lambda extra, put, xp: extra.partition(put(V), 3, xp=xp)[3],
    "rad2deg": lambda extra, put, xp: extra.rad2deg(put(A), xp=xp),
    "searchsorted": lambda extra, put, xp: extra.searchsorted(
        put(np.sort(V)), put(V[:4]), side="right", xp=xp
    ),
    "searchsorted, rows": lambda extra, put, xp: extra.searchsorted(
        put(np.sort(A)), put(A[:, :2]), xp=xp
    ),
    "setdiff1d": lambda extra, put, xp: extra.setdiff1d(put(I), put(PAIR), xp=xp),
    "sinc": lambda extra, put, xp: extra.sinc(put(A), xp=xp),
    "union1d": lambda extra, put, xp: extra.union1d(put(I), put(I + 2), xp=xp),
    "unravel_index": lambda extra, put, xp: xp.stack(
        extra.unravel_index(put(I), (2, 5), xp=xp)
    ),
}
#: What makes arrays of numbers, on the default device.
MADE = {
    "default_dtype": lambda extra, xp: xp.ones(2, dtype=extra.default_dtype(xp)),
    "diag_indices": lambda extra, xp: xp.stack(extra.diag_indices(4, ndim=3, xp=xp)),
    "tril_indices": lambda extra, xp: xp.stack(
        extra.tril_indices(4, offset=1, m=5, xp=xp)
    ),
    "triu_indices": lambda extra, xp: xp.stack(extra.triu_indices(4, xp=xp)),
}


@pytest.fixture
def extra(imported):
    return imported("array_api_extra")


def check(found, expected, device):
    assert xdev.device_of(found) == device
    found = xdev.to_numpy(found)
    assert found.dtype == np.asarray(expected).dtype
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


def test_every_function_is_called(extra):
    called = {re.match(r"\w+", name)[0] for name in [*CALLS, *MADE]}
    # The standard has them now; there they are deprecated.
    others = {"__version__", "testing", "broadcast_shapes", "expand_dims"}

    assert called == set(extra.__all__) - others


@pytest.mark.parametrize("name", CALLS)
def test_results_are_numpys_on_the_arrays_device(extra, device, name):
    expected = CALLS[name](extra, np.copy, np)
    put = partial(xdev.asarray, device=device, copy=True)

    check(CALLS[name](extra, put, xdev), expected, device)


@pytest.mark.parametrize("name", MADE)
def test_what_is_made_is_on_the_default_device(extra, device, name):
    with xdev.use_device(device):
        found = MADE[name](extra, xdev)

    check(found, MADE[name](extra, np), device)


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
