"""The simulated device: time adds up, and the checker knows what orders what."""

import pytest

from xdev.testing import SimulatedDevice, SimulatedSource


@pytest.fixture
def device():
    return SimulatedDevice()


@pytest.fixture
def streams(device):
    return [device.stream() for _ in range(3)]


def tenant(device):
    return device.tenant(4096, 512)


def test_time_adds_up_on_a_stream_and_not_over_two(device, streams):
    one, two, three = streams
    start = one.record()
    for stream in (one, one, two):
        stream.launch(seconds=1.0)
    event = one.record()
    ends = [stream.record().elapsed(start) for stream in (one, two)]
    assert ends == pytest.approx([2.0, 1.0], abs=1e-4)
    assert not event.done
    assert not one.done
    assert device.now < 1e-4, "calls return at once"

    event.synchronize()
    assert device.now == pytest.approx(2.0, abs=1e-4)
    assert event.done
    assert one.done
    two.launch(seconds=3.0)
    three.wait_event(two.record())
    three.launch(seconds=1.0)
    device.synchronize()
    assert device.now == pytest.approx(6.0, abs=1e-4)


def test_a_handle_comes_back_though_work_goes_on_and_is_another_stream(device):
    stream = device.stream()
    handle = stream.ptr
    tenant(device).use(stream, seconds=3.0)
    del stream
    with pytest.raises(RuntimeError, match="no stream of handle 0x1000"):
        device.record(handle)
    with pytest.raises(RuntimeError, match="or no more"):
        device.wait(handle, device.null.record())
    stream = device.stream()
    assert stream.ptr == handle
    tenant(device).use(stream)
    assert len(device.hazards) == 1
    device.synchronize()
    assert device.now >= 3.0


@pytest.mark.parametrize("wrote", [False, True])
@pytest.mark.parametrize("write", [False, True])
@pytest.mark.parametrize("second", [0, 1])
def test_a_stream_orders_its_own_work_alone(device, streams, wrote, write, second):
    tenant(device).use(streams[0], write=wrote, seconds=0.0)
    device.now += 100.0  # luck is no order
    tenant(device).use(streams[second], write=write)
    assert len(device.hazards) == (second == 1 and (wrote or write))


def test_an_event_orders_what_came_before_it_only(device, streams):
    one, two, three = streams
    early = one.record()
    tenant(device).use(one)
    two.wait_event(early)
    late = tenant(device)
    late.use(two)
    assert len(device.hazards) == 1
    two.wait_event(one.record())
    late.use(two)
    three.wait_event(two.record())  # and so on, from stream to stream
    tenant(device).use(three)
    assert len(device.hazards) == 1


@pytest.mark.parametrize("how", ["event", "done", "stream", "device"])
def test_what_the_host_knows_orders_all_that_comes(device, streams, how):
    one, two, _ = streams
    tenant(device).use(one, seconds=1.0)
    event = one.record()
    late = tenant(device)
    late.touch()
    assert "by the host" in str(device.hazards.pop()), "it must know before it touches"
    device.now += 2.0
    waits = {"event": event, "stream": one, "device": device}
    assert event.done if how == "done" else waits[how].synchronize() is None
    late.touch()
    late.use(two)
    assert device.hazards == []


def test_a_tenant_whose_bytes_are_gone_must_not_use_them(device, streams):
    early = tenant(device)
    tenant(device)
    early.use(streams[0])
    assert len(device.hazards) == 1


@pytest.mark.parametrize(
    ("address", "nbytes", "hazards"),
    [
        *((0, 1024, 0), (0, 1025, 1), (2047, 1, 1)),
        *((2048, 1, 0), (1200, 8, 1), (0, 4096, 1)),
    ],
)
def test_bytes_meet_where_they_overlap(device, streams, address, nbytes, hazards):
    device.tenant(1024, 1024).use(streams[0])
    device.tenant(address, nbytes).use(streams[1])
    assert len(device.hazards) == hazards


def test_freeing_waits_and_the_address_comes_back(device, streams):
    source = SimulatedSource(device, 4096)
    address = source.allocate(4096)
    device.null.launch(seconds=1.0)
    with pytest.raises(MemoryError, match="capacity of 4096"):
        source.allocate(1)
    source.free(address, 4096)
    assert device.now >= 1.0
    assert source.allocate(4096) == address
    with pytest.raises(ValueError, match="not lent"):
        source.free(address, 1)
    streams[0].launch(seconds=1.0)
    assert source.done(source.record(streams[0].ptr)), "a stream that it never saw"
    assert device.now >= 2.0
