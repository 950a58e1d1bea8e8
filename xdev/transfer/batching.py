"""``batches``: the next batches are read and uploaded while this one is computed.

A batch is a copy, on the CPU as elsewhere: an iterable may fill its buffers, lists and
dicts anew, a loop may write into its batches, and neither sees the other's doing.
"""

from __future__ import annotations

import atexit
import os
import threading
from contextlib import suppress
from contextvars import copy_context
from functools import cache, partial
from itertools import islice
from operator import index, length_hint
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, final
from weakref import ref

import numpy as np

from xdev._progress import Progress
from xdev.device import Stream, as_device, current_stream, registry
from xdev.errors import ConfigurationError, XdevError
from xdev.memory.arrays import mark_uses
from xdev.transfer.adaptation import arrays_in, move

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator

    from xdev.device import Device, Event

#: Iterators whose batches stay as they are while later ones are read.
LASTING: tuple[type, ...] = (type(iter([])), type(iter(())))
PATIENCE = 5.0  # for iterables that are busy when Python shuts down [s]


def batches(
    iterable: Iterable[Any],
    device: object = None,
    *,
    prefetch: int = 2,
    progress: bool = False,
) -> Generator[Any]:
    """Iterate over batches on a device; the next ones upload while this one computes.

    Each batch is what :func:`~xdev.adapt` makes of the iterable's, but always a copy:
    its arrays are on the device, and tensors of other libraries are arrays of the
    device's own. On the CPU a batch is read and copied when it is asked for. On other
    devices a thread reads the iterable and uploads on a stream of its own, up to
    ``prefetch`` batches ahead.

    The iterator keeps no batch that it handed out: its memory goes back when nobody
    else holds it and the device is done with it. There are at most ``prefetch + 2``
    batches on the device, those apart that are still held. The loop may end at any
    batch, also by an exception: the thread ends, and what was uploaded goes back.

    Parameters
    ----------
    iterable : iterable
        Of arrays, or structures of arrays, such as a list or a PyTorch ``DataLoader``.
        It runs in the context of this call, and may fill its buffers and containers
        anew once it is asked for the next batch. An array is the iterable of its items
        along the first axis: those of a vector are arrays of no dimensions, and on the
        CPU NumPy's numbers, which stand for them.
    device : device, optional
        Where to; the default device unless given.
    prefetch : int
        How many batches to upload ahead, at least 1; on the CPU none is.
    progress : bool
        Whether to show a bar on standard error, where that is a terminal or a
        notebook's.

    Yields
    ------
    object
        Like the iterable's batch. Work that the current stream gets after this comes
        after the upload.

    Raises
    ------
    ConfigurationError, DeviceUnavailableError
        The device is unknown, or cannot be used; ``prefetch`` is below 1.
    TypeError
        ``iterable`` is not iterable, or ``prefetch`` not a whole number.
    XdevError
        The iterator was begun before this process was forked.
    Exception
        What the iterable or an upload raises, in place of the batch that failed.

    Examples
    --------
    >>> import numpy as np
    >>> pairs = [(np.array([1]), np.array([2])), (np.array([3]), np.array([4]))]
    >>> [a + b for a, b in batches(pairs, "cpu")]
    [array([3]), array([7])]
    """
    target = as_device(device)
    if index(prefetch) < 1:
        message = f"batches(prefetch={prefetch}): at least 1 batch is uploaded ahead"
        raise ConfigurationError(message)
    source = iter(iterable)  # now: a loader starts its workers
    on_cpu = target.type == "cpu"
    if isinstance(iterable, np.ndarray) and not (on_cpu and target.library is None):
        source = map(_item, source)
    total = length_hint(iterable, -1)  # a generator has none
    bar = Progress("batches", total if total >= 0 else None, shown=progress)
    if on_cpu:
        return _in_turn(partial(copy_context().run, _copied, source, target), bar)
    feed = Feed(source, target, prefetch)
    moved = _ahead(feed, bar)
    feed.end_with(moved)
    return moved


def _item(x: Any) -> Any:
    """Return a number of a NumPy array as an array, as other libraries have it."""
    return np.asarray(x) if isinstance(x, np.number | np.bool_) else x


def _copied(source: Iterator[Any], target: Device) -> list[Any]:
    """Read a batch; return its copy in a list, which is empty at the end."""
    return [move(target, batch, copy=True) for batch in islice(source, 1)]


def _in_turn(receive: Callable[[], list[Any]], progress: Progress) -> Generator[Any]:
    """Yield batches, each when it is asked for, and hold none of them meanwhile."""
    with progress as bar:
        while batch := receive():
            yield batch.pop()
            bar.update()


def _ahead(feed: Feed, progress: Progress) -> Generator[Any]:
    """Yield a feed's batches, and hold none of them meanwhile."""
    try:
        feed.start()
        yield from _in_turn(feed.receive, progress)
    finally:
        feed.stop()


@final
class Feed:
    """Batches on their way from an iterable to whoever computes with them.

    A thread of its own reads and uploads a batch for every *credit* that it gets:
    ``prefetch`` at the start, then one for each batch asked for, which is an event of
    the work that was queued with those before. So neither the host nor the device gets
    too far ahead.

    It takes no lock: a consumer may be dropped by the garbage collector, in the middle
    of anything.
    """

    def __init__(self, source: Iterator[Any], device: Device, prefetch: int) -> None:
        self._source: Iterator[Any] | None = source
        self._device, self._process = device, os.getpid()
        self._ready: SimpleQueue[list[Any] | BaseException] = SimpleQueue()
        self._credits: SimpleQueue[Event | None] = SimpleQueue()
        self._first = prefetch  # credits that are left from the start
        self._stopped = False
        self._context = copy_context()  # of the call, not of the first batch

    # -- the consumer -----------------------------------------------------------------

    def start(self) -> None:
        """Begin to upload, after what the current stream has queued so far."""
        self._stream = Stream(self._device)
        self._stream.wait(self._queued_so_far())
        self.thread = threading.Thread(
            target=partial(self._context.run, self._run),
            name=f"xdev-batches-{self._device}",
            daemon=True,  # one that hangs in the iterable must not keep Python alive
        )
        _running().add(self)
        self.thread.start()

    def end_with(self, consumer: Generator[Any]) -> None:
        """Let the thread end once the consumer is gone, whatever interrupts `stop`.

        In C alone: at a line of Python an interrupt would leave it waiting.
        """
        self._consumer = ref(consumer, partial(self._credits.put, None))

    def receive(self) -> list[Any]:
        """Return the next batch in a list, empty at the end, or raise what went wrong.

        One more is uploaded once the work queued so far is done, with those before.
        """
        if os.getpid() != self._process:
            whose = "the parent process's, whose thread is not here"
            way = "call xdev.batches(...) after the fork"
            raise XdevError(f"this iterator of batches is {whose}: {way}")
        self._credits.put(self._queued_so_far())
        parcel = self._ready.get()
        if isinstance(parcel, BaseException):
            try:
                raise parcel
            finally:
                del parcel  # its traceback holds this frame
        if parcel:
            current_stream(self._device).wait(parcel.pop())
            _lend(arrays_in(parcel), self._device)
        return parcel

    def _queued_so_far(self) -> Event:
        with registry.backend(self._device.type).use(self._device.index):
            return current_stream(self._device).record()

    def stop(self) -> None:
        """Let the thread end, and drop what it uploaded; it waits for nothing."""
        self._stopped = True
        self._credits.put(None)
        with suppress(Empty):
            while True:
                self._ready.get_nowait()

    # -- the thread -------------------------------------------------------------------

    def _run(self) -> None:
        source: Any
        source, self._source = self._source, None
        try:
            here = registry.backend(self._device.type).use(self._device.index)
            with here, self._stream:
                _lend((), self._device)  # the pool hears of this stream
                while self._may_upload() and (box := [*islice(source, 1)]):
                    there = self._send(box)
                    if not isinstance(source, LASTING):
                        there.synchronize()  # the next may be written in the same place
        except BaseException as error:  # noqa: BLE001 - the consumer raises it
            if not self._stopped:  # else it would hold itself, by its traceback
                self._ready.put(error)
        else:
            self._ready.put([])
        _running().discard(self)

    def _may_upload(self) -> bool:
        if self._first:
            self._first -= 1
        elif (credit := self._credits.get()) is None:
            return False
        else:
            credit.synchronize()
        return not self._stopped

    def _send(self, box: list[Any]) -> Event:
        """Upload the batch in a box, and hold neither."""
        moved = move(self._device, box.pop(), non_blocking=True, copy=True)
        there = self._stream.record()
        self._ready.put([moved, there])
        return there


@cache
def _running() -> set[Feed]:
    """Return the feeds whose threads may run; they end before Python does."""
    feeds: set[Feed] = set()

    def end() -> None:
        left = [*feeds]  # other threads may begin some, even now
        for feed in left:
            feed.stop()
        for feed in left:
            if feed.thread.is_alive():  # none is in a forked child, or about to start
                feed.thread.join(PATIENCE)

    atexit.register(end)
    return feeds


def _lend(arrays: Iterable[Any], device: Device) -> None:
    """Tell CUDA's pool that the current stream uses arrays of the uploads' stream."""
    if device.type == "cuda":
        mark_uses(arrays, device.index)
