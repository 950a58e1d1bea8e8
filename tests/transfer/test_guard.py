import logging

import numpy as np
import pytest

import xdev

X = np.arange(6, dtype="float32")


def test_copies_between_devices_are_counted():
    with xdev.transfer_guard("allow") as outer:
        there = xdev.to_device(X, "fake")
        with xdev.transfer_guard("allow") as inner:
            xdev.to_numpy(there)
            xdev.to_numpy(X)
            xdev.to_device(X, "cpu", copy=True)

    assert (outer.copies, outer.nbytes) == (2, 48)
    assert (inner.copies, inner.nbytes) == (1, 24)


def test_disallow_stops_a_copy_before_it_is_made():
    with (
        xdev.transfer_guard("allow") as counts,
        xdev.transfer_guard("disallow"),
        pytest.raises(xdev.XdevError, match=r"24 B from cpu to fake:0"),
    ):
        xdev.to_device(X, "fake")

    assert counts.copies == 0
    assert xdev.device_of(xdev.to_device(X, "fake")) == "fake"


def test_log_writes_each_copy(caplog):
    with caplog.at_level(logging.WARNING), xdev.transfer_guard("log"):
        xdev.to_device(X, "fake:1")

    assert caplog.messages == ["copy of 24 B from cpu to fake:1"]


def test_unknown_modes_are_refused():
    with pytest.raises(xdev.ConfigurationError, match="disallow, log, allow"):
        xdev.transfer_guard("forbid").__enter__()
