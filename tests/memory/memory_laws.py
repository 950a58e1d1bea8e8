"""What several files of the memory room share: threads, sources, programs."""

import sys
from contextlib import contextmanager
from textwrap import dedent

import numpy as np
import pytest
from running import printed, python

import xdev
from xdev import memory
from xdev.memory import Pool, registry
from xdev.memory.sources.cuda import CudaSource, PinnedSource
from xdev.memory.sources.host import HostSource
from xdev.testing import FakeSource


def here():
    """Return the line of the call."""
    return sys._getframe(1).f_lineno


@contextmanager
def at_lines(place, act):
    """Call a function with the frame at every line of a file or of a folder."""

    def line(frame, event, _):
        if event == "line":
            act(frame)
        return line

    def call(frame, *_):
        return line if frame.f_code.co_filename.startswith(str(place)) else None

    sys.settrace(call)
    try:
        yield
    finally:
        sys.settrace(None)


#: What is refused of an array that was freed, beside the facade's functions.
USES = [
    lambda x: xdev.to_device(x, "cpu"),
    lambda x: xdev.to_device(np.ones(x.shape), "cpu", out=x),
    lambda x: xdev.adapt("cpu", {"x": [x]}),
    lambda x: next(xdev.batches([x], "fake")),
    lambda x: xdev.add(np.ones(x.shape), 1, out=x),
    lambda x: xdev.clip(np.ones(x.shape), 0, 1, out=x),
    lambda x: xdev.real(np.ones(x.shape), out=x),
    lambda x: memory.record_stream(x, 0),
    xdev.vectorize(lambda a: a + 1),
    *(xdev.to_numpy, xdev.pin, xdev.is_pinned, xdev.device_of, xdev.namespace),
    memory.free,
]
MACHINE = 1 << 40  # what a pretended machine has [B]
QUANTUM = 512  # what fake sources align to [B]
POLICIES = ("async", "binned", "none", "simple", "split")


@contextmanager
def registered(pools):
    """Let pools, by device and kind, be all that this process has."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registry, "_pools", dict(pools))
        patch.setattr(registry, "_budgets", {})
        yield


def pools_under(limit, policy, sources):
    first = Pool(sources[0], policy, limit)
    return [first, *(Pool(each, policy, budget=first.budget) for each in sources[1:])]


SOURCES = {
    "fake": lambda: FakeSource(1 << 40),
    "host": HostSource,
    "pinned": PinnedSource,
    "device": lambda: CudaSource(0),
}


class Slow:
    """A fake source whose events are done when the test says so, or somebody waits."""

    alignment = 512

    def __init__(self):
        self.inner, self.finished, self.events = FakeSource(1 << 40), set(), []

    def __getattr__(self, name):
        return getattr(self.inner, name)

    def record(self, stream):
        self.events.append(stream)
        return len(self.events) - 1

    def done(self, event):
        return event in self.finished

    def synchronize(self):
        self.finished.update(range(len(self.events)))


def process(program, *options, **environment):
    settings = {"XDEV_DEVICE": "cpu"} | environment
    return python(*options, "-c", dedent(program), **settings)


def output(program, *options, **environment):
    """Run a program that must go well; return its output, or fail with its errors."""
    settings = {"XDEV_DEVICE": "cpu"} | environment
    return printed(program, options=("-W", "error", *options), **settings)
