"""scikit-learn's estimators and metrics on the arrays of each device."""

import pytest


@pytest.fixture(autouse=True)
def _installed(imported):
    imported("sklearn")


def test_results_are_numpys_in_the_devices_arrays(device, differences):
    assert differences("sklearn", device) == {}
