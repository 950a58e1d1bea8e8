"""A scheduler that refuses, so that nothing is computed unasked."""

import importlib
import os

import pytest

import xdev

if "dask" in os.environ.get("XDEV_TEST_LIBRARIES", "").split(","):
    importlib.import_module("distributed")  # promised: no test here is skipped for it


class Lazy:
    """Collections that must not be computed but by :meth:`values`."""

    def values(self, x):
        return xdev.to_numpy(x.compute(scheduler="sync"))


@pytest.fixture
def lazy():
    """Fail where something is computed by itself."""

    dask = pytest.importorskip("dask")

    def refuse(*_, **__):
        raise AssertionError("computed by itself")

    with dask.config.set(scheduler=refuse):
        yield Lazy()
