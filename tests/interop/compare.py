"""Run calls on NumPy's arrays and on a device's; print as JSON what differs.

A process of its own: SciPy reads ``SCIPY_ARRAY_API`` once, when it is imported.
"""

import json
import os
import sys
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from runpy import run_path

import numpy as np

import xdev

os.environ["SCIPY_ARRAY_API"] = "1"
ROOM = Path(__file__).parent


def check(found, expected, kind):
    """Raise an AssertionError where two results differ, or the type is another one."""
    if isinstance(expected, list | tuple):
        for one, other in zip(found, expected, strict=True):
            check(one, other, kind)
        return
    if isinstance(expected, np.ndarray) and expected.ndim:
        assert type(found) is kind, type(found)
    if hasattr(found, "dtype"):
        found = xdev.to_numpy(found)
        assert found.dtype == np.asarray(expected).dtype, found.dtype
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)


def differences(library, device):
    """Yield the name of each call that fails on a device, with the reason."""
    tables = run_path(str(ROOM / f"{library}_calls.py"))
    calls = dict(tables["CALLS"])
    for name, without in (("BY_LIBRARY", ["fake"]), ("ON_CPU", ["fake", "cuda"])):
        if device.type not in without:
            calls |= tables[name]
    context = nullcontext
    if library == "sklearn":
        import sklearn

        context = partial(sklearn.config_context, array_api_dispatch=True)
    kind = type(xdev.zeros(1, device=device))
    for name, call in calls.items():
        with xdev.use_device("cpu"):  # where a call makes arrays itself
            expected = call(np.copy)
        try:
            with xdev.use_device(device), context():
                found = call(partial(xdev.asarray, device=device, copy=True))
            check(found, expected, kind)
        except Exception as error:  # noqa: BLE001 - the text is the result
            yield name, f"{type(error).__name__}: {error}"


if __name__ == "__main__":
    print(json.dumps(dict(differences(sys.argv[1], xdev.Device(sys.argv[2])))))
