import asyncio
import logging

import numpy as np
import pytest
from running import within

import xdev

X = np.arange(6, dtype="float32")


def test_disallow_stops_a_copy_before_it_is_made():
    with (
        xdev.transfer_guard("allow") as counts,
        xdev.transfer_guard("disallow"),
        pytest.raises(xdev.XdevError, match=r"24 B from cpu to fake:0"),
    ):
        xdev.to_device(X, "fake")

    assert counts.copies == 0
    assert xdev.device_of(xdev.to_device(X, "fake")) == "fake"


def test_unknown_modes_are_refused():
    with pytest.raises(xdev.ConfigurationError, match="disallow, log, allow"):
        xdev.transfer_guard("forbid")


def test_a_guard_decorates_functions():
    @xdev.transfer_guard("disallow")
    def moved():
        return xdev.to_device(X, "fake")

    for _ in range(2):
        with pytest.raises(xdev.XdevError, match="disallow"):
            moved()  # which ends the guard, too
    assert xdev.device_of(xdev.to_device(X, "fake")) == "fake"


def test_each_guard_counts_what_is_copied_in_it_and_in_which_direction():
    with xdev.transfer_guard("allow") as counts:
        there = xdev.to_device(X, "fake")
        xdev.to_device(there, "fake:1")
        xdev.to_numpy(there)
        with xdev.transfer_guard("allow") as inner:
            xdev.to_numpy(there)
            xdev.to_numpy(X)
            xdev.to_device(X, "cpu", copy=True)

    assert counts.routes == {
        ("cpu", "fake:0"): (1, 24),
        ("fake:0", "fake:1"): (1, 24),
        ("fake:0", "cpu"): (2, 48),
    }
    assert counts.routes["fake:0", "cpu"].nbytes == 48
    assert (counts.copies, counts.nbytes) == (4, 96)
    assert (inner.copies, inner.nbytes) == (1, 24)


SEEN = {
    "bool": lambda x: bool(x[0] > 0),
    "int": lambda x: int(x[0]),
    "float": lambda x: float(x[0]),
    "complex": lambda x: complex(x[0]),
    "format": lambda x: f"{x[0]:.1f}",
    "item": lambda x: x[0].item(),
    "tolist": lambda x: x.tolist(),
    "tobytes": lambda x: x.tobytes(),
    "dlpack": lambda x: np.from_dlpack(x, device="cpu"),
    "contains": lambda x: 0.0 in x,
}


@pytest.mark.parametrize("name", SEEN)
def test_what_goes_around_xdev_is_seen_on_the_fake_device(name):
    x = xdev.to_device(X, "fake:1")
    nbytes = {"bool": 1, "contains": 1, "tolist": 24, "tobytes": 24, "dlpack": 24}

    with xdev.transfer_guard("allow") as counts:
        SEEN[name](x)
    with xdev.transfer_guard("disallow"), pytest.raises(xdev.XdevError, match="fake:1"):
        SEEN[name](x)

    assert counts.routes == {("fake:1", "cpu"): (1, nbytes.get(name, 4))}


def test_printing_and_what_stays_on_the_device_are_free():
    x = xdev.to_device(X, "fake")

    with xdev.transfer_guard("disallow"):
        assert repr(x)
        assert format(x)
        assert len(x) == 6
        assert x.sum().shape == ()
        with pytest.raises(ValueError, match="ambiguous"):
            bool(x)
        with pytest.raises(TypeError):
            np.asarray(x)


UPLOADED = {
    "a list": lambda on: xdev.asarray([1.0, 2.0, 3.0], device=on),
    "a nested list": lambda on: xdev.asarray([[1, 2, 3]], device=on, dtype="int64"),
    "a buffer": lambda on: xdev.asarray(bytearray(24), device=on),
    "a choice": lambda on: xdev.random.default_rng(1, device=on).choice([1, 2, 3], 2),
    "an order": lambda on: xdev.random.default_rng(1, device=on).permutation([1, 2, 3]),
}


@pytest.mark.parametrize("name", UPLOADED)
def test_what_xdev_uploads_itself_counts(device, name):
    elsewhere = device != "cpu"

    with xdev.transfer_guard("allow") as counts:
        UPLOADED[name](device)

    assert counts.routes == ({("cpu", str(device)): (1, 24)} if elsewhere else {})
    if elsewhere:
        with (
            xdev.transfer_guard("disallow"),
            pytest.raises(xdev.XdevError, match="24 B from cpu"),
        ):
            UPLOADED[name](device)


def test_numbers_go_along_with_a_launch(device):
    with xdev.transfer_guard("disallow"):
        x = xdev.full((2, 2), 3.0, device=device)
        xdev.asarray(3.0, device=device)
        xdev.add(xdev.clip(x, 0, np.float64(2)), 1)
        xdev.ones_like(x)
        xdev.linspace(0, 1, 5, device=device)
        xdev.random.default_rng(1, device=device).normal(1.0, 2.0, 3)


def test_log_names_the_line_that_asked(caplog):
    with caplog.at_level(logging.WARNING), xdev.transfer_guard("log"):
        xdev.to_numpy(xdev.to_device(X, "fake"))
        xdev.asarray(X, device="fake")

    assert {record.pathname for record in caplog.records} == {__file__}
    assert len(caplog.records) == 3
    assert caplog.messages[0] == "copy of 24 B from cpu to fake:0"


def test_other_threads_and_tasks_are_not_watched():
    def copy():
        xdev.to_device(X, "fake")

    async def copies():
        async def guarded():
            with xdev.transfer_guard("allow") as counts:
                await asyncio.sleep(0)
                copy()
                await asyncio.sleep(0)
            return counts.copies

        async def unguarded():
            for _ in range(3):
                copy()
                await asyncio.sleep(0)

        counted, _ = await asyncio.gather(guarded(), unguarded())
        return counted

    assert asyncio.run(copies()) == 1
    with xdev.transfer_guard("disallow"):
        within(10, [copy])
