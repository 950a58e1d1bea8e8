"""SciPy's functions, scikit-learn's estimators and metrics on each device's arrays."""

import pytest


@pytest.mark.parametrize("library", ["scipy", "sklearn"])
def test_results_are_numpys_in_the_devices_arrays(
    imported, device, library, differences
):
    imported(library)
    assert differences(library, device) == {}
