import numpy as np

from xdev import _optional


def test_numba_cuda_finds_the_name_that_numpy_dropped(monkeypatch):
    """As on NumPy 2.5, where `numpy.row_stack` is gone and compiling would fail."""
    monkeypatch.delitem(vars(np), "row_stack", raising=False)
    _optional.numba_cuda.cache_clear()

    _optional.numba_cuda()

    assert np.vstack is vars(np)["row_stack"]
