"""``batches`` of loaders that use their memory again: a batch is the loop's own.

The expected batches are deep copies, taken when the loader hands them out.
"""

import array
import collections
import contextlib
import copy
import dataclasses
import itertools
import types

import numpy as np
import pytest

import xdev

COUNT, LEFT = 9, 4  # batches, and those until a loop is left
SIZES = [3, 1 << 16]  # of a batch's arrays: small ones go in packs
Pair = collections.namedtuple("Pair", "x y")  # noqa: PYI024


@dataclasses.dataclass
class Sample:
    x: object
    labels: list
    number: int = 0


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
    def __init__(self, parts):
        self.parts = parts


@xdev.adapt.register(Own)
def _(move, x):
    return Own([move(part) for part in x.parts])


def filled(kept, change):
    """Return what makes batches of one container, changed for each of them."""

    def batch(buffer, number):
        change(kept, buffer, number)
        return kept

    return batch


def fill_lists(kept, buffer, number):
    kept[:] = [buffer, number, [number] * number]


def fill_dicts(kept, buffer, number):
    kept.update(x=buffer, deep=kept.get("deep", {}))
    kept["deep"]["y"] = (buffer[0], number)


def fill_sample(kept, buffer, number):
    kept.x, kept.number = buffer, number
    kept.labels.append(number)


def fill_pythons(kept, _, number):
    """Fill Python's own buffers, which stay on the host; a view's memory, too."""
    (numbers, doubles, seen), _ = kept["kept"], kept["view"]
    numbers[1] = doubles[1] = number
    seen.add(number)


def pythons():
    kept = bytearray(3), array.array("d", [0, 0]), set()
    return {"kept": list(kept), "view": View(memoryview(kept[0]))}


#: How a loader makes a batch of its one buffer, by the batch's number.
LOADERS = {
    "buffer": lambda: lambda buffer, _: buffer,
    "strides": lambda: lambda buffer, number: buffer.T[:: 1 + number % 2],
    "lists": lambda: filled([], fill_lists),
    "dicts": lambda: filled({}, fill_dicts),
    "dataclasses": lambda: filled(Sample(None, []), fill_sample),
    "registered": lambda: lambda buffer, number: Own([buffer, number]),
    "tensors": lambda: lambda buffer, number: (Tensor(buffer), number),
    "pinned": lambda: lambda buffer, _: buffer,
    "pythons": lambda: filled(pythons(), fill_pythons),
}


@dataclasses.dataclass
class View:
    view: memoryview

    def __deepcopy__(self, _):
        return View(memoryview(bytes(self.view)))


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


@pytest.mark.parametrize("ends", ["at its end", "early", "by an error"])
@pytest.mark.parametrize("prefetch", [1, 2, 4])
@pytest.mark.parametrize("loader", LOADERS)
def test_a_batch_that_is_held_does_not_change(device, loader, prefetch, ends):
    for nbytes in SIZES:
        buffer, batch, expected = np.zeros((2, nbytes), "f4"), LOADERS[loader](), []
        if loader == "pinned":
            buffer = xdev.pin(buffer)

        def source(buffer=buffer, batch=batch, expected=expected):
            for number in range(COUNT):
                buffer[...] = number
                made = batch(buffer, number)
                expected.append(copy.deepcopy(made))
                yield made
                if ends == "by an error" and number == LEFT - 1:
                    buffer[...] = -1
                    raise KeyError("lost")

        with contextlib.closing(
            xdev.batches(source(), device, prefetch=prefetch)
        ) as moved:
            count = COUNT if ends == "at its end" else LEFT
            held = list(itertools.islice(moved, count))
            if ends == "by an error":
                with pytest.raises(KeyError, match="lost"):
                    next(moved)
        buffer[...] = -1

        assert_same(held, expected[:count])


@pytest.mark.parametrize(
    "make", [list, tuple, iter, np.asarray, lambda x: map(np.asarray, x)]
)
def test_what_the_loop_writes_does_not_reach_the_source(device, make):
    arrays = [np.full(1000, number, "f4") for number in range(5)]
    source = make(arrays)

    for batch in xdev.batches(source, device):
        xdev.add(batch, 1, out=batch)

    assert_same(arrays, [np.full(1000, number, "f4") for number in range(5)])
    if isinstance(source, np.ndarray):
        assert_same(list(source), arrays)


@pytest.mark.parametrize("form", ["coo", "csr", "dia", "lil"])
def test_sparse_matrices_are_copied_on_the_cpu(form):
    sparse = pytest.importorskip("scipy.sparse")
    x = getattr(sparse, f"{form}_array")(np.diag([1.0, 0.0, 3.0])[:2])
    ((batch, again),) = xdev.batches([[x, x]], "cpu")

    expected = x.toarray()
    x *= 2
    assert type(batch) is type(x)
    assert batch is again
    np.testing.assert_array_equal(batch.toarray(), expected)
