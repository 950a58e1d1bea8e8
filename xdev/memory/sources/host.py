"""Pageable host memory: private anonymous mappings, huge pages where there are any."""

from __future__ import annotations

import mmap
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

HUGE = 2 << 20  # the size of a huge page, and the alignment that one needs [B]
ALIGNMENT = 64  # a cache line, and the widest vector register [B]
MEMBERSHIP = Path("/proc/self/cgroup")  # which cgroups this process is in
CGROUPS = Path("/sys/fs/cgroup")  # where they are, with their limits


@final
class HostSource:
    """Memory of this process.

    A fresh mapping costs a page fault for each page that is touched; the pool keeps
    its mappings, so a loop pays that once.
    """

    name = "cpu"
    alignment = ALIGNMENT

    def __init__(self) -> None:
        self._maps: dict[int, mmap.mmap] = {}

    def total(self) -> int:
        """Return the memory that this process may use [B]."""
        return host_total()

    def allocate(self, nbytes: int) -> int:
        """Map ``nbytes``, from a huge page's start where they fill one."""
        slack = HUGE if nbytes >= HUGE else 0
        private = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS  # a forked child has a copy
        try:
            fresh = mmap.mmap(-1, nbytes + slack, flags=private)
        except (OSError, OverflowError, ValueError) as error:
            raise MemoryError(f"the system maps no {nbytes:,} B: {error}") from error
        if slack:
            with suppress(OSError):  # a kernel without huge pages: small ones do
                fresh.madvise(mmap.MADV_HUGEPAGE)
        start = _start(fresh)
        address = -(-start // HUGE) * HUGE if slack else start
        self._maps[address] = fresh; return address  # fmt: skip # noqa: E702 - nothing is raised in between

    def clear_pages(self, address: int, nbytes: int, segment: int) -> slice:
        """Give whole pages back, which are zeros when they are touched again.

        Return which bytes of the range these are; none where the system has no such
        way. ``segment`` is what :meth:`allocate` returned for its memory.
        """
        page = mmap.PAGESIZE
        first, last = -(-address // page) * page, (address + nbytes) // page * page
        if last <= first or sys.platform != "linux":  # others keep what is there
            return slice(0, 0)
        memory = self._maps[segment]
        try:
            memory.madvise(mmap.MADV_DONTNEED, first - _start(memory), last - first)
        except OSError:  # locked pages stay
            return slice(0, 0)
        return slice(first - address, last - address)

    def free(self, address: int, nbytes: int) -> None:  # noqa: ARG002
        """Unmap."""
        del self._maps[address]  # the last reference

    def record(self, stream: int) -> None:
        """Return no event: nothing is queued on a host stream."""

    def wait(self, stream: int, event: object) -> None:
        """Do nothing, for the same reason."""

    def done(self, event: object) -> bool:  # noqa: ARG002
        """Say yes."""
        return True

    def synchronize(self) -> None:
        """Do nothing."""


def _start(memory: mmap.mmap) -> int:
    # Not .ctypes.data: that imports a module, which fails while Python shuts down.
    return int(np.frombuffer(memory, np.uint8).__array_interface__["data"][0])


def host_total() -> int:
    """Return the memory of the machine, or of this process's cgroup if less [B].

    0 where the system tells neither.
    """
    limits = [*_cgroup_limits()]
    with suppress(AttributeError, OSError, ValueError):  # no such function, or name
        pages, nbytes = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
        if pages > 0 and nbytes > 0:  # else the system does not say
            limits.append(pages * nbytes)
    return min(limits, default=0)


def _cgroup_limits() -> Iterator[int]:
    """Return the limits of this process's memory cgroup and of those above it [B].

    In a container the path may be the host's, of which only the top is visible.
    """
    lines: list[str] = []
    with suppress(OSError):  # no cgroups on this system
        lines = MEMBERSHIP.read_text().splitlines()
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if not controllers:  # version 2
            top, name = CGROUPS, "memory.max"
        elif "memory" in controllers.split(","):
            top, name = CGROUPS / "memory", "memory.limit_in_bytes"
        else:
            continue
        folder = top / path.lstrip("/")
        inside = (at for at in (folder, *folder.parents) if at.is_relative_to(top))
        for at in inside:
            with suppress(OSError):  # not visible, or the top, which has no limit
                text = (at / name).read_text().strip()
                if text.isdecimal():  # or "max"
                    yield int(text)
