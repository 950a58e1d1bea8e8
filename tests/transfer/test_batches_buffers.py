"""``batches`` of loaders that use their memory again: a batch is the loop's own.

The expected batches are deep copies, taken when the loader hands them out.
"""

import array
import collections
import contextlib
import copy
import dataclasses
import threading
import types

import numpy as np
import pytest

import xdev

COUNT = 9
SIZES = [3, 1 << 16]  # of a batch's arrays: small ones go in packs
Pair = collections.namedtuple("Pair", "x y")  # noqa: PYI024


@dataclasses.dataclass
class Sample:
    x: object
    labels: list
    number: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class Frozen:
    x: object


class Named(dict):
    """With an attribute of its own."""


class Tensor:
    """A tensor of another library, on memory that its loader fills again."""

    def __init__(self, values):
        self.values = values

    def __dlpack__(self, **options):
        return self.values.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.values.__dlpack_device__()

    def __deepcopy__(self, _):
        return self.values.copy()


class Own:
    """A class with a rule."""

    def __init__(self, parts):
        self.parts = parts


@xdev.adapt.register(Own)
def _(move, x):
    return Own([move(part) for part in x.parts])


class Loader:
    """It fills one buffer, and one container, again and again."""

    def __init__(self, nbytes):
        self.buffer = np.zeros((2, nbytes // 4), "f4")

    def __len__(self):
        return COUNT

    def __iter__(self):
        for number in range(COUNT):
            self.buffer[...] = number
            yield self.batch(number)

    def batch(self, number):  # noqa: ARG002
        return self.buffer


class Views(Loader):
    def batch(self, number):
        return self.buffer[number % 2]


class Strides(Loader):
    def batch(self, number):
        return self.buffer.T[:: 1 + number % 2]


class Lists(Loader):
    def __init__(self, nbytes):
        super().__init__(nbytes)
        self.kept = []

    def batch(self, number):
        self.kept[:] = [self.buffer, number, [number] * number]
        return self.kept


class Dicts(Loader):
    kept: dict = {}  # noqa: RUF012 - used again, by all

    def batch(self, number):
        self.kept.update(x=self.buffer, deep=self.kept.get("deep", {}))
        self.kept["deep"]["y"] = (self.buffer[0], number)
        return self.kept


class OnlyNumbers(Loader):
    kept: list = []  # noqa: RUF012

    def batch(self, number):
        self.kept.append(number)
        return {"numbers": self.kept}


class Others(Loader):
    kept = types.SimpleNamespace(last=collections.deque(maxlen=2), more=Named())

    def batch(self, number):
        self.kept.last.append(number)
        self.kept.more["number"], self.kept.more.named = number, -number
        return self.kept


class Dataclasses(Loader):
    kept = Sample(None, [])

    def batch(self, number):
        self.kept.x, self.kept.number = self.buffer, number
        self.kept.labels.append(number)
        return self.kept


class FrozenOnes(Loader):
    def batch(self, number):
        return Pair(Frozen(self.buffer), number)


class Shared(Loader):
    def batch(self, number):  # noqa: ARG002
        return [self.buffer, self.buffer]


class Registered(Loader):
    kept = Own([])

    def batch(self, number):
        self.kept.parts = [self.buffer, number]
        return self.kept


class Tensors(Loader):
    def batch(self, number):
        return Tensor(self.buffer), number


class Pinned(Loader):
    def __init__(self, nbytes):
        super().__init__(nbytes)
        self.buffer = xdev.pin(self.buffer)


class Buffers(Loader):
    """Python's own, which stay on the host; a view's memory is copied, too."""

    kept = bytearray(3), array.array("d", [0, 0]), set()

    def batch(self, number):
        self.kept[0][1] = self.kept[1][1] = number
        self.kept[2].add(number)
        return {"kept": list(self.kept), "view": View(memoryview(self.kept[0]))}


class OnlyBytes(Loader):
    kept = bytearray(1)

    def batch(self, number):
        self.kept[0] = number
        return self.kept


@dataclasses.dataclass
class View:
    view: memoryview

    def __deepcopy__(self, _):
        return View(memoryview(bytes(self.view)))


LOADERS = [Loader, Views, Strides, Lists, Dicts, OnlyNumbers, Others, Dataclasses]
LOADERS += [Buffers, OnlyBytes, FrozenOnes, Shared, Registered, Tensors, Pinned]


SEQUENCES = list, tuple, collections.deque, bytearray, array.array, set, memoryview


def plain(x):
    """Return what a batch holds, as NumPy's arrays in Python's own containers."""
    if isinstance(x, dict):
        held = {**x, **getattr(x, "__dict__", {})}
        return {key: plain(part) for key, part in held.items()}
    if isinstance(x, SEQUENCES):
        return [plain(part) for part in x]
    if dataclasses.is_dataclass(x):
        return [plain(getattr(x, field.name)) for field in dataclasses.fields(x)]
    if isinstance(x, Own | types.SimpleNamespace):
        return plain(vars(x))
    if isinstance(x, int | float | str | None):
        return x
    return xdev.to_numpy(x)


def assert_same(batches, expected):
    assert len(batches) == len(expected)
    for batch, old in zip(batches, expected, strict=True):
        assert type(batch) is type(old) or not hasattr(old, "__dict__")
        np.testing.assert_equal(plain(batch), plain(old))


def loaded(loader, taken):
    """Note a deep copy of each batch as it is handed out."""
    for batch in loader:
        taken.append(copy.deepcopy(batch))
        yield batch


@pytest.mark.parametrize("prefetch", [1, 2, 3, 4])
@pytest.mark.parametrize("loader", LOADERS)
def test_a_batch_that_is_held_does_not_change(device, loader, prefetch):
    for nbytes in SIZES:
        expected = []

        source = loaded(loader(4 * nbytes), expected)
        held = list(xdev.batches(source, device, prefetch=prefetch))

        assert_same(held, expected)
        assert len(held) == COUNT


@pytest.mark.parametrize("prefetch", [1, 4])
@pytest.mark.parametrize("loader", LOADERS)
def test_nor_do_those_of_a_loop_that_is_left(device, loader, prefetch):
    expected, held = [], []
    one = loader(1 << 16)

    with contextlib.closing(
        xdev.batches(loaded(one, expected), device, prefetch=prefetch)
    ) as moved:
        for batch in moved:
            held.append(batch)
            if len(held) == 4:
                break
    one.buffer[...] = -1

    assert_same(held, expected[:4])


@pytest.mark.parametrize("prefetch", [1, 4])
def test_nor_do_those_before_an_exception(device, prefetch):
    one, held = Loader(1 << 16), []

    def source():
        for number, batch in enumerate(one):
            yield batch
            if number == 4:
                one.buffer[...] = -1
                raise KeyError("lost")

    moved = xdev.batches(source(), device, prefetch=prefetch)
    with pytest.raises(KeyError, match="lost"):
        held.extend(iter(moved))

    assert_same(held, [np.full_like(one.buffer, number) for number in range(5)])


@pytest.mark.parametrize("make", [list, tuple, iter, np.asarray, lambda x: map(id_, x)])
def test_what_the_loop_writes_does_not_reach_the_source(device, make):
    arrays = [np.full(1000, number, "f4") for number in range(5)]
    source = make(arrays)

    for batch in xdev.batches(source, device):
        xdev.add(batch, 1, out=batch)

    assert_same(arrays, [np.full(1000, number, "f4") for number in range(5)])
    if isinstance(source, np.ndarray):
        assert_same(list(source), arrays)


def id_(x):
    return x


def test_so_it_is_with_buffers_on_the_device_itself(device):
    buffer = xdev.zeros(1000, device=device)

    def source():
        for number in range(COUNT):
            buffer[...] = number
            yield buffer

    held = list(xdev.batches(source(), device, prefetch=3))

    assert_same(held, [np.full(1000, float(number)) for number in range(COUNT)])


def test_buffers_in_turn_by_another_thread(device):
    """As loaders with workers have it: a buffer is free once the next batch is due."""
    free, full = threading.Semaphore(2), threading.Semaphore(0)
    buffers = [np.zeros(1 << 14, "f4") for _ in range(2)]

    def work():
        for number in range(COUNT):
            free.acquire()
            buffers[number % 2][...] = number
            full.release()

    def source():
        thread = threading.Thread(target=work)
        thread.start()
        for number in range(COUNT):
            full.acquire()
            yield buffers[number % 2]
            free.release()
        thread.join()

    held = list(xdev.batches(source(), device))

    assert_same(held, [np.full(1 << 14, number) for number in range(COUNT)])


def test_sparse_matrices_of_all_formats_are_copied_on_the_cpu():
    sparse = pytest.importorskip("scipy.sparse")
    for kind in ("coo", "csr", "csc", "dia", "bsr", "lil", "dok"):
        x = sparse.eye_array(4, format=kind)
        (batch,) = xdev.batches([x], "cpu")
        assert type(batch) is type(x)
        assert batch is not x
        x *= 2
        assert (batch.toarray() == np.eye(4)).all()


def test_on_the_cpu_too_the_iterable_runs_in_the_context_of_the_call(device):
    def source():
        yield str(xdev.default_device())

    with xdev.use_device("fake:1"):
        moved = xdev.batches(source(), device)
    assert list(moved) == ["fake:1"]
