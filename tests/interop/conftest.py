"""What the tests of all libraries need: addresses, and a process of their own."""

import json
from pathlib import Path

import pytest

#: What runs in a process of its own; pytest would import it to look for doctests.
collect_ignore = ["compare.py", "scipy_calls.py", "sklearn_calls.py"]


@pytest.fixture
def address():
    """Return a function that says where an array of any library lies."""

    def address_of(x):
        for name in ("data_ptr", "unsafe_buffer_pointer"):  # PyTorch's, JAX's
            if hasattr(x, name):
                return getattr(x, name)()
        host = "__array_interface__" if hasattr(x, "__array_interface__") else ""
        return getattr(x, host or "__cuda_array_interface__")["data"][0]

    return address_of


@pytest.fixture
def differences(printed):
    """Return a function that says which calls of a library fail on a device."""

    def run(library, device):
        program = Path(__file__).with_name("compare.py")
        told = printed(program, library, device, options=("-W", "ignore"))
        return json.loads(told.splitlines()[-1])

    return run
