"""The simulated device: time adds up, and the checker knows what orders what."""

import pytest

from xdev.testing import SimulatedDevice, SimulatedSource


@pytest.fixture
def device():
    return SimulatedDevice()


@pytest.fixture
def streams(device):
    return [device.stream() for _ in range(3)]


class TestTime:
    def test_work_of_one_stream_runs_in_turn_and_of_two_side_by_side(self, device):
        one, two = device.stream(), device.stream()
        start = one.record()
        for stream in (one, one, two):
            stream.launch(seconds=1.0)
        ends = [stream.record().elapsed(start) for stream in (one, two)]
        assert ends == pytest.approx([2.0, 1.0], abs=1e-4)

    def test_calls_return_at_once_and_synchronize_waits(self, device):
        stream = device.stream()
        stream.launch(seconds=5.0)
        event = stream.record()
        assert not event.done
        assert not stream.done
        assert device.now < 1e-5, "ten calls of the host"
        event.synchronize()
        assert device.now >= 5.0
        assert event.done
        assert stream.done

    def test_a_stream_waits_for_an_event_and_those_before_it(self, device, streams):
        for stream, after in zip(streams, [None, *streams], strict=False):
            if after is not None:
                stream.wait_event(after.record())
            stream.launch(seconds=1.0)
        device.synchronize()
        assert device.now == pytest.approx(3.0, abs=1e-4)


class TestStreams:
    def test_a_handle_comes_back_though_work_goes_on(self, device):
        stream = device.stream()
        handle = stream.ptr
        stream.launch(seconds=3.0)
        del stream
        assert device.stream().ptr == handle
        device.synchronize()
        assert device.now >= 3.0

    def test_a_handle_of_no_stream_is_refused(self, device):
        handle = device.stream().ptr
        with pytest.raises(RuntimeError, match="no stream of handle 0x1000"):
            device.record(handle)
        with pytest.raises(RuntimeError, match="or no more"):
            device.wait(handle, device.null.record())


class TestOrder:
    @pytest.mark.parametrize("wrote", [False, True])
    @pytest.mark.parametrize("write", [False, True])
    @pytest.mark.parametrize("second", [0, 1])
    def test_a_stream_orders_its_own_work_alone(
        self, device, streams, wrote, write, second
    ):
        device.tenant(4096, 512).use(streams[0], write=wrote)
        device.tenant(4096, 512).use(streams[second], write=write)
        assert len(device.hazards) == (second == 1 and (wrote or write))

    def test_luck_is_no_order(self, device, streams):
        device.tenant(4096, 512).use(streams[0], seconds=0.0)
        device.now += 100.0
        device.tenant(4096, 512).use(streams[1])
        assert len(device.hazards) == 1

    def test_an_event_orders_what_came_before_it_only(self, device, streams):
        one, two, _ = streams
        early = one.record()
        device.tenant(4096, 512).use(one)
        two.wait_event(early)
        late = device.tenant(4096, 512)
        late.use(two)
        assert len(device.hazards) == 1
        two.wait_event(one.record())
        late.use(two)
        assert len(device.hazards) == 1

    def test_order_goes_on_from_stream_to_stream(self, device, streams):
        one, two, three = streams
        device.tenant(4096, 512).use(one)
        two.wait_event(one.record())
        three.wait_event(two.record())
        device.tenant(4096, 512).use(three)
        assert device.hazards == []

    @pytest.mark.parametrize("how", ["event", "done", "stream", "device"])
    def test_what_the_host_knows_orders_all_that_comes(self, device, streams, how):
        one, two, _ = streams
        device.tenant(4096, 512).use(one, seconds=1.0)
        event = one.record()
        device.now += 2.0
        waits = {
            "event": event.synchronize,
            "done": lambda: event.done,
            "stream": one.synchronize,
            "device": device.synchronize,
        }
        waits[how]()
        device.tenant(4096, 512).use(two)
        assert device.hazards == []

    def test_the_host_must_know_before_it_touches(self, device, streams):
        device.tenant(4096, 512).use(streams[0])
        late = device.tenant(4096, 512)
        late.touch()
        assert "by the host" in str(device.hazards.pop())
        streams[0].synchronize()
        late.touch()
        assert device.hazards == []

    def test_a_handle_is_not_its_next_stream(self, device):
        def use():
            device.tenant(4096, 512).use(device.stream())
            return device.stream().ptr

        assert use() == use()
        assert len(device.hazards) == 1

    def test_a_tenant_whose_bytes_are_gone_must_not_use_them(self, device, streams):
        early = device.tenant(4096, 512)
        device.tenant(4096, 512)
        early.use(streams[0])
        assert len(device.hazards) == 1


@pytest.mark.parametrize(
    ("address", "nbytes", "hazards"),
    [
        (0, 1024, 0),
        (0, 1025, 1),
        (2047, 1, 1),
        (2048, 1, 0),
        (1200, 8, 1),
        (0, 4096, 1),
    ],
)
def test_bytes_meet_where_they_overlap(address, nbytes, hazards):
    device = SimulatedDevice()
    one, two = device.stream(), device.stream()
    device.tenant(1024, 1024).use(one)
    device.tenant(address, nbytes).use(two)
    assert len(device.hazards) == hazards


class TestSource:
    def test_freeing_waits_and_the_address_comes_back(self, device):
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

    def test_an_unknown_streams_event_comes_after_all_work(self, device, streams):
        source = SimulatedSource(device, 4096)
        streams[0].launch(seconds=1.0)
        assert source.done(source.record(streams[0].ptr))
        assert device.now >= 1.0
