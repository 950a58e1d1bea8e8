"""SciPy's functions with array API support on the arrays of each device."""


def test_results_are_numpys_in_the_devices_arrays(device, differences):
    assert differences("scipy", device) == {}
