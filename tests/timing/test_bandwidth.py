"""What a copy within a device's memory reaches."""

import pytest

import xdev
from xdev import memory
from xdev.timing import compare, copy_bandwidth


def test_it_counts_bytes_read_and_written_once_and_leaves_nothing(device, small_copies):
    nbytes, seconds = small_copies.nbytes, small_copies.seconds
    memory.reclaim(device=device)
    held, used = memory.reserved(device), memory.allocated(device)

    first = copy_bandwidth(device)

    assert memory.allocated(device) == used
    assert memory.reserved(device) < held + nbytes
    assert copy_bandwidth(str(device)) == first == 2 * nbytes / seconds[0]
    assert 1e6 < first < 1e14
    assert len(seconds) == 1
    with pytest.raises(xdev.DeviceUnavailableError):
        copy_bandwidth("cuda:99")


def test_rows_have_their_share_of_it(device, measured):
    measured({device: 1e9})
    x = xdev.ones(1000, device=device)
    table = compare(
        {"add": lambda: x + x, "other": lambda: 2 * x},
        nbytes={"add": 24_000},
        number=1,
        repeat=1,
    )
    row = table["add"]
    assert row.bandwidth == pytest.approx(24_000 / row.timing.timings[0])
    assert row.share == pytest.approx(row.bandwidth / 1e9)
    assert table["other"].share is None
