"""``batches``: the same batches on every device, in order."""

import contextvars
from collections import namedtuple
from contextlib import closing

import numpy as np
import pytest

import xdev
from xdev.transfer import batching

Pair = namedtuple("Pair", "x y")  # noqa: PYI024
NBYTES = 1 << 20  # of a batch: no pack, no cache of small blocks


def large(number):
    return np.full(NBYTES // 4, number, "float32")


def numbers(moved):
    return [int(x[0]) for x in moved]


# -- what comes out -------------------------------------------------------------------


@pytest.mark.parametrize("prefetch", [1, 2, 5])
@pytest.mark.parametrize("count", [0, 1, 2, 3, 20])
def test_the_batches_come_in_order(device, prefetch, count):
    source = [
        Pair(large(number), {"y": [np.int8(1), "text"]}) for number in range(count)
    ]

    moved = list(xdev.batches(source, device, prefetch=prefetch))

    assert numbers(batch.x for batch in moved) == list(range(count))
    for batch, old in zip(moved, source, strict=True):
        assert type(batch) is Pair
        assert xdev.device_of(batch.x) == device
        assert batch.y == old.y
        np.testing.assert_array_equal(xdev.to_numpy(batch.x), old.x)


def test_on_the_cpu_nothing_is_read_ahead(feeds):
    read = []

    def source():
        for number in range(9):
            read.append(number)
            yield number

    with closing(xdev.batches(source(), "cpu", prefetch=4)) as moved:
        for number in range(3):
            assert next(moved) == number
            assert read[-1] == number
    assert not feeds()


@pytest.mark.parametrize("dtype", ["float32", "int8", "bool", "complex128"])
def test_a_vector_is_the_iterable_of_its_items(device, dtype):
    x = np.arange(5).astype(dtype)

    moved = list(xdev.batches(x, device))

    own = type(xdev.empty((), device=device)) if device.type != "cpu" else np.generic
    for item, old in zip(moved, x, strict=True):
        assert isinstance(item, own)
        assert xdev.device_of(item) == device
        assert (item.shape, item.dtype) == ((), x.dtype)
        assert xdev.to_numpy(item) == old


def test_a_vector_is_the_iterable_of_a_librarys_items():
    torch = pytest.importorskip("torch")

    moved = list(xdev.batches(np.arange(3), xdev.Device("cpu", "torch")))

    assert torch.equal(torch.stack(moved), torch.arange(3))


def test_text_stays_as_it_is_on_every_device(device):
    assert list(xdev.batches(np.array(["a", "b"]), device)) == ["a", "b"]


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        (("cpu", [large(0)]), xdev.ConfigurationError, "wrong way round"),
        (
            (xdev.Device("cpu"), [large(0)]),
            TypeError,
            r"iterable .* is Device\('cpu'\)",
        ),
        ((2, [large(0)]), TypeError, "iterable of batches is 2"),
        ((np.array(3.0), "cpu"), TypeError, "iterable .* is .*numpy.ndarray.* 0-d"),
    ],
    ids=str,
)
def test_what_is_no_iterable_is_refused_with_the_call(arguments, error, text):
    with pytest.raises(error, match=text + r".*xdev\.batches\(iterable, device\)"):
        xdev.batches(*arguments)


def test_it_computes_what_the_loop_without_it_computes(device):
    draw = np.random.default_rng(0)
    source = [
        (draw.standard_normal((64, 64)), draw.standard_normal(64)) for _ in range(9)
    ]

    total = xdev.zeros(64, dtype="float64", device=device)
    for a, b in xdev.batches(source, device):
        total = total + xdev.matmul(a, b)

    expected = sum(a @ b for a, b in source)
    np.testing.assert_allclose(xdev.to_numpy(total), expected, rtol=1e-12)


def test_the_iterable_may_write_into_the_same_buffer_again(device):
    buffer = xdev.empty_pinned(NBYTES // 4, "float32")

    def source():
        for number in range(12):
            buffer[...] = number
            yield buffer

    kept = [batch + 0 for batch in xdev.batches(source(), device)]

    for number, batch in enumerate(kept):
        np.testing.assert_array_equal(
            xdev.to_numpy(batch), np.full(NBYTES // 4, number)
        )


@pytest.mark.cuda
@pytest.mark.parametrize("own_stream", [False, True])
@pytest.mark.parametrize("prefetch", [1, 3])
def test_work_of_a_library_that_queues_and_drops_is_in_order(
    cuda, own_stream, prefetch
):
    cupy = xdev._optional.cupy()
    draw = np.random.default_rng(0)
    source = [draw.random(1 << 18, np.float32) for _ in range(60)]
    small = [[x[:9], x[9:99], x[99:999].astype("float64")] for x in source]
    stream = xdev.Stream(cuda) if own_stream else xdev.current_stream(cuda)

    sums = []
    with stream:
        pairs = zip(source, small, strict=True)
        for x, parts in xdev.batches(pairs, cuda, prefetch=prefetch):
            total = x * 0
            for _ in range(30):  # longer than the next upload takes
                cupy.add(total, x, out=total)
            sums.append((total, [part + 1 for part in parts]))
            del x, parts, total
    for (total, parts), x, old in zip(sums, source, small, strict=True):
        np.testing.assert_allclose(total.get(), x * 30, rtol=1e-5)
        for part, was in zip(parts, old, strict=True):
            np.testing.assert_array_equal(part.get(), was + 1)


def test_the_default_device_is_used_without_one(device):
    with xdev.use_device(device):
        (batch,) = xdev.batches([large(3)])
    assert xdev.device_of(batch) == device


# -- where the iterable runs ----------------------------------------------------------


def test_the_iterable_runs_in_the_context_of_the_call(device):
    variable = contextvars.ContextVar("variable", default="unset")

    def source():
        yield [variable.get(), str(xdev.default_device())]

    def inside():
        variable.set("set")
        with xdev.use_device(device):
            return next(xdev.batches(source(), device))

    assert contextvars.copy_context().run(inside) == ["set", str(device)]


def test_a_guard_sees_the_uploads_of_batches_made_inside_it(far):
    source = [large(0), large(1)]
    with xdev.transfer_guard("allow") as counts:
        moved = xdev.batches(source, far)
    with xdev.transfer_guard("disallow"):  # the loop's body copies nothing itself
        list(moved)
    assert (counts.copies, counts.nbytes) == (2, 2 * NBYTES)
    with xdev.transfer_guard("disallow"):
        moved = xdev.batches(source, far)
    with pytest.raises(xdev.XdevError, match="disallow"):
        next(moved)


def test_two_loops_at_a_time_do_not_meet(device):
    pairs = zip(
        xdev.batches(map(large, range(10)), device),
        xdev.batches(map(large, range(10, 20)), device),
        strict=True,
    )
    assert [int((a + b)[0]) for a, b in pairs] == list(range(10, 30, 2))


# -- other libraries' arrays, progress ------------------------------------------------


class Exporter:
    """A tensor of another library, as DLPack has it."""

    def __init__(self, values):
        self._values = values

    def __dlpack__(self, **options):
        return self._values.__dlpack__(**options)

    def __dlpack_device__(self):
        return self._values.__dlpack_device__()


def test_tensors_of_another_library_become_the_devices_own_arrays(device):
    ((x, label),) = xdev.batches([(Exporter(large(4)), 1)], device)

    assert type(x) is type(xdev.empty(1, device=device))
    assert (int(x[0]), label) == (4, 1)


def check_a_pytorch_loader(device, **options):
    import torch

    x = torch.arange(1000 * 33, dtype=torch.float32).reshape(1000, 33)
    dataset = torch.utils.data.TensorDataset(x, torch.arange(1000))
    loader = torch.utils.data.DataLoader(dataset, batch_size=64, **options)

    moved = list(xdev.batches(loader, device))

    assert len(moved) == len(loader)
    usual = type(xdev.empty(1, device=device))
    assert {type(part) for batch in moved for part in batch} == {usual}
    values = np.concatenate([xdev.to_numpy(batch[0]) for batch in moved])
    np.testing.assert_array_equal(values, x.numpy())
    labels = np.concatenate([xdev.to_numpy(batch[1]) for batch in moved])
    np.testing.assert_array_equal(labels, np.arange(1000))


torch_installed = pytest.mark.skipif(
    not xdev._optional.installed("torch"), reason="PyTorch is not installed"
)


@torch_installed
def test_a_pytorch_loader_is_a_source(device):
    check_a_pytorch_loader(device)


@torch_installed
def test_so_is_one_with_processes_of_its_own(far):
    check_a_pytorch_loader(far, num_workers=1, multiprocessing_context="spawn")


@torch_installed
@pytest.mark.cuda
def test_so_is_one_of_pinned_memory(cuda):
    check_a_pytorch_loader(cuda, pin_memory=True)


def test_progress_is_shown_on_request(device, bars):
    assert len(list(xdev.batches([large(0)] * 3, device, progress=True))) == 3
    assert len(list(xdev.batches(map(large, range(2)), device, progress=True))) == 2

    assert [(bar.total, bar.count, bar.closed) for bar in bars] == [
        (3, 3, True),
        (None, 2, True),
    ]


def test_a_bar_ends_with_its_loop(device, bars, until, feeds):
    moved = xdev.batches(map(large, range(9)), device, progress=True)
    next(moved)
    next(moved)
    moved.close()

    assert [(bar.count, bar.closed) for bar in bars] == [(1, True)]
    until(lambda: not feeds())


def test_progress_without_tqdm_says_how_to_get_it(device, monkeypatch):
    monkeypatch.setattr(batching._optional, "installed", lambda name: name != "tqdm")
    with pytest.raises(xdev.ConfigurationError, match="pip install tqdm"):
        xdev.batches([], device, progress=True)


def test_no_number_of_batches_ahead_costs_anything_by_itself(device):
    source = [np.full(3, k) for k in range(4)]
    moved = xdev.batches(source, device, prefetch=10**9)
    assert [int(xdev.to_numpy(x)[0]) for x in moved] == [0, 1, 2, 3]
