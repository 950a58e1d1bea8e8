"""What several files of the memory room share: threads, sources, programs."""

import os
import subprocess
import sys
import textwrap
import threading
from contextlib import contextmanager

import pytest

from xdev.memory import Pool, registry
from xdev.memory.sources.cuda import CudaSource, PinnedSource
from xdev.memory.sources.host import HostSource
from xdev.testing import FakeSource


def within(seconds, calls, *, interval=None):
    """Run calls in threads; return their results, or fail where one hangs.

    With an interval threads are switched so often [s].
    """
    results, errors = [], []

    def run(call):
        try:
            results.append(call())
        except BaseException as error:  # noqa: BLE001 - the test shows it
            errors.append(error)

    before = sys.getswitchinterval()
    sys.setswitchinterval(interval or before)
    try:
        threads = [threading.Thread(target=run, args=(c,), daemon=True) for c in calls]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(seconds)
    finally:
        sys.setswitchinterval(before)
    hung = [sys._current_frames()[t.ident] for t in threads if t.is_alive()]
    assert hung == [], "deadlock"
    for error in errors:
        raise error
    return results


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
    return subprocess.run(
        [sys.executable, *options, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=100,
        env={**os.environ, "XDEV_DEVICE": "cpu", **environment},
        check=False,
    )


def output(program, **environment):
    """Run a program that must go well; return its output, or fail with its errors."""
    done = process(program, "-W", "error", **environment)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout
