"""xarray over xdev's arrays: labels around arrays that stay where they are.

Ufuncs that are called on its objects are tests/ufunc/test_overrides.py too.
"""

import numpy as np
import pytest

import xdev

VALUES = np.random.default_rng(0).standard_normal((48, 3))


wave = xdev.vectorize(lambda x, y: 2 * x + y)
total = xdev.vectorize(lambda x, y: x + y)


@xdev.guvectorize("(n)->()")
def spread(x, out):
    low = high = x[0]
    for value in x:
        low, high = min(low, value), max(high, value)
    out[0] = high - low


@pytest.fixture
def xarray(imported):
    return imported("xarray")


@pytest.fixture
def weather(xarray):
    """Return a maker of measurements, four a day, on a device."""

    def make(device):
        times = np.datetime64("2025-01-01") + np.arange(48) * np.timedelta64(6, "h")
        return xarray.DataArray(
            xdev.asarray(VALUES, device=device),
            dims=("time", "site"),
            coords={"time": times.astype("M8[ns]"), "site": ["a", "b", "c"]},
        )

    return make


PROGRAMS = {
    "operators": lambda x, _: 2 * x + x[0],
    "folds of ufuncs": lambda x, _: x.reduce(total.reduce, "time"),
    "where": lambda x, _: x.where(x > 0, 0.0),
    "one place": lambda x, _: x.isel(site=1, time=slice(2, 9)),
    "the facade's functions": lambda x, xarray: xarray.apply_ufunc(xdev.sin, x),
    "ufuncs themselves": lambda x, _: wave(x, 1.0),
    "a set": lambda x, xarray: xarray.Dataset({"x": x, "y": x + 1}).sum("site")["y"],
}
#: For these xarray asks for more than the standard: ``transpose``, ``nanmean``.
BY_LIBRARY = {
    "means": lambda x, _: x.mean("time"),
    "products": lambda x, xarray: xarray.dot(x, x, dim="time"),
    "generalized ufuncs": lambda x, xarray: xarray.apply_ufunc(
        spread, x, input_core_dims=[["time"]]
    ),
}


def agree(program, weather, xarray, device):
    expected = program(weather("cpu").copy(data=VALUES), xarray)
    found = program(weather(device), xarray)
    assert xdev.device_of(found.data) == device
    back = found.copy(data=xdev.to_numpy(found.data))
    xarray.testing.assert_allclose(back, expected, rtol=1e-14)


@pytest.mark.parametrize("name", PROGRAMS)
def test_results_are_numpys_where_the_arrays_are(weather, xarray, device, name):
    agree(PROGRAMS[name], weather, xarray, device)


@pytest.mark.parametrize("name", BY_LIBRARY)
def test_numpys_and_cupys_arrays_are_enough(weather, xarray, real_device, name):
    agree(BY_LIBRARY[name], weather, xarray, real_device)


def test_the_data_is_the_array_itself(xarray):
    x = xdev.zeros((1 << 9, 1 << 9))

    labelled = xarray.DataArray(x, dims=("i", "j"))
    labelled[0, 0] = 5

    assert labelled.data is x
    assert x[0, 0] == 5
