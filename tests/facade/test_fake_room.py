"""What a fake device has no room for is refused before the host makes it."""

import numpy as np
import pytest

import xdev
from xdev import memory

N = 10**8  # 800 MB of float64
CREATIONS = {
    "empty": lambda: xdev.empty(N, device="fake"),
    "zeros": lambda: xdev.zeros((N,), device="fake"),
    "ones": lambda: xdev.ones(N, device="fake"),
    "full": lambda: xdev.full(N, 0.5, device="fake"),
    "full, typed": lambda: xdev.full(N, 1, dtype=xdev.float64, device="fake"),
    "arange": lambda: xdev.arange(N, device="fake"),
    "arange by steps": lambda: xdev.arange(0, N / 4, 0.25, device="fake"),
    "linspace": lambda: xdev.linspace(0, 1, N, device="fake"),
    "eye": lambda: xdev.eye(10**4, device="fake"),
    "random": lambda: xdev.random.default_rng(1, "fake").random(N),
}


@pytest.fixture
def made_by_the_host(monkeypatch):
    """The sizes that NumPy was asked for, by whoever makes pooled arrays."""
    made = []
    monkeypatch.setattr(
        memory.pool("cpu"), "take", lambda nbytes, _=0: made.append(nbytes)
    )
    return made


@pytest.mark.fake
@pytest.mark.parametrize("name", CREATIONS)
def test_a_limit_refuses_before_the_host_allocates(name, made_by_the_host):
    memory.set_limit("100 MB", "fake")
    try:
        with pytest.raises(xdev.OutOfMemoryError, match="fake:0: cannot allocate"):
            CREATIONS[name]()
    finally:
        memory.set_limit(None, "fake")
    assert not made_by_the_host


@pytest.mark.fake
def test_an_upload_is_refused_before_the_host_copies():
    row = np.broadcast_to(np.float64(1), (N, 10**4))  # of 8 TB
    with pytest.raises(xdev.OutOfMemoryError, match="fake:0: cannot allocate"):
        xdev.to_device(row, "fake")


@pytest.mark.fake
def test_what_fits_is_made_and_counted_once():
    before = memory.allocated("fake")
    x = xdev.zeros(3 << 20, device="fake")
    assert memory.allocated("fake") - before == x.nbytes
    np.testing.assert_array_equal(xdev.to_numpy(x), 0)


@pytest.mark.fake
@pytest.mark.parametrize("shape", [(-(10**5), -(10**5)), (10**30,), (2**40, 2**40)])
def test_an_impossible_shape_is_said_to_be_one_as_on_the_host(shape):
    with pytest.raises(ValueError, match="shape") as on_host:
        xdev.empty(shape, device="cpu")
    with pytest.raises(ValueError, match="shape") as on_fake:
        xdev.empty(shape, device="fake")
    assert str(on_fake.value) == str(on_host.value)
