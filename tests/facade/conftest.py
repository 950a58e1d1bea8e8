"""Every library to call the facade with, and one call of each of its functions."""

import importlib
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xdev

sys.path.append(str(Path(__file__).parents[1]))  # for the modules that rooms share
from calls import CALLS, V

#: What libraries cannot do. Dask's collections have no memory, and need the result's
#: shape, which an array of counts does not tell.
BEYOND = {"dask": {"from_dlpack", "repeat-"}}


def _on_gpu(cupy, x, site):
    with cupy.cuda.Device(site):
        return cupy.asarray(x)


#: By library: how its module makes an array of NumPy's one, on the device of a number.
PUT = {
    "numpy": lambda _, x, site: x,  # noqa: ARG005 - it has one
    "fake": lambda _, x, site: xdev.to_device(x, f"fake:{site}"),
    "strict": lambda m, x, site: m.asarray(x, device=m.Device(f"device{site + 1}")),
    "torch": lambda m, x, site: m.from_numpy(x),  # noqa: ARG005 - likewise
    "jax": lambda m, x, site: m.device_put(x, m.local_devices(backend="cpu")[site]),
    "dask": lambda m, x, site: m.from_array(x, chunks=-1),  # noqa: ARG005 - likewise
    "cupy": _on_gpu,
}


@dataclass(frozen=True)
class Library:
    """An array library: its arrays from NumPy's, on two devices where it has two."""

    name: str
    module: Any

    @property
    def sites(self):
        """The numbers of its devices, the default one first."""
        if self.name == "cupy":
            return tuple(range(min(2, self.module.cuda.runtime.getDeviceCount())))
        return (0, 1) if self.name in ("jax", "strict", "fake") else (0,)

    def put(self, x, site=0):
        if isinstance(x, list):
            return [self.put(each, site) for each in x]
        if not isinstance(x, np.ndarray):
            return x
        return PUT[self.name](self.module, x.copy(), site)

    def lacks(self, call):
        name = f"{call.path}-" if call.path == "repeat" and not call.kw else call.path
        return name in BEYOND.get(self.name, ())

    def owns(self, x):
        return isinstance(x, type(self.put(V))) or (
            self.name == "numpy" and isinstance(x, np.generic)
        )

    def host(self, x):
        if self.name == "torch":
            return x.resolve_conj().resolve_neg().numpy()
        if self.name == "dask":
            return x.compute()
        return np.asarray(x if self.name in ("numpy", "jax") else xdev.to_numpy(x))


MODULES = {
    "numpy": "numpy",
    "fake": "numpy",
    "strict": "array_api_strict",
    "torch": "torch",
    "jax": "jax",
    "dask": "dask.array",
}


@pytest.fixture(params=[*MODULES, pytest.param("cupy", marks=pytest.mark.cuda)])
def library(request, imported):
    """Each array library in turn; with two GPUs the current one stays current."""
    if request.param == "cupy":
        request.getfixturevalue("cuda")
        cupy = importlib.import_module("cupy")
        yield Library("cupy", cupy)
        assert cupy.cuda.runtime.getDevice() == 0
    else:
        yield Library(request.param, imported(MODULES[request.param]))


@pytest.fixture(params=CALLS, ids=map(str, CALLS))
def call(request):
    return request.param


@pytest.fixture
def calls():
    return CALLS
