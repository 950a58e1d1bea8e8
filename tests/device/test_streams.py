import pytest

import xdev


def test_a_stream_is_a_queue_with_one_interface(device):
    assert xdev.current_stream(device).ptr == 0
    stream = xdev.Stream(device)
    with stream as entered:
        assert entered is stream
        assert xdev.current_stream(device) == stream
        first = stream.record()
        x = xdev.ones(1000, device=device) + 1
        last = stream.record()
    stream.synchronize()

    assert stream.done
    assert first.done
    assert last.done
    assert last.elapsed(first) >= 0
    assert repr(last) == f"<Event on {device}>"
    assert float(x[0]) == 2


def test_wait_orders_streams(device):
    one, other = xdev.Stream(device), xdev.Stream(device)
    with one:
        x = xdev.ones(10**6, device=device)
    other.wait(one.record())
    with other:
        y = x + 1
    other.synchronize()

    assert float(y.sum()) == 2e6


def test_events_of_two_devices_do_not_mix():
    cpu, fake = xdev.Stream("cpu"), xdev.Stream("fake")

    with pytest.raises(xdev.DeviceMismatchError, match=r"xdev.Stream\('cpu'\).record"):
        cpu.wait(fake.record())
    with pytest.raises(xdev.DeviceMismatchError, match="fake:0"):
        cpu.record().elapsed(fake.record())


@pytest.mark.parametrize("thing", [3, None, xdev.Stream("cpu")])
def test_what_is_no_event_is_refused(device, thing):
    stream = xdev.Stream(device)

    with pytest.raises(TypeError, match=r"stream\.record\(\)"):
        stream.wait(thing)
    with pytest.raises(TypeError, match=r"stream\.record\(\)"):
        stream.record().elapsed(thing)


@pytest.mark.cuda
def test_cupys_current_stream_is_xdevs(cuda):
    import cupy

    with xdev.Stream(cuda) as stream:
        assert cupy.cuda.get_current_stream().ptr == stream.ptr
    with cupy.cuda.Stream() as native:
        assert xdev.current_stream(cuda).ptr == native.ptr
