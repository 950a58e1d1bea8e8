"""A process ends cleanly with memory of every kind alive, whichever way it ends.

Each exit is a process of its own. The `deep` profile runs 1000 of each device.
"""

import os
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import hypothesis
from running import python

# All are errors but numba-cuda's own, with NumPy 2.5, when it first compiles.
GENERIC = "ignore:The 'generic' unit for NumPy timedelta:DeprecationWarning"
OPTIONS = ["-W", "error", "-W", GENERIC, "-X", "faulthandler"]
PROGRAM = Path(__file__).with_name("exits.py")
EXITS = hypothesis.settings().max_examples // 2
#: How a process ends: its exit status, and the last line that it writes.
ENDINGS = {
    "end": (0, ""),
    "collecting": (0, ""),
    "sys.exit": (3, ""),
    "exception": (1, "RuntimeError: ('the end', "),
    "signal": (-2, "KeyboardInterrupt"),
}
POLICIES = ("split", "binned", "simple", "none")


def settings(device, seed):
    """Return the environment of one exit: each policy, and at times debug mode."""
    return {
        "PYTHONHASHSEED": seed,
        "XDEV_DEVICE": device,
        "XDEV_MEMORY_POOL": POLICIES[seed % len(POLICIES)],
        "XDEV_DEBUG": int(seed % 7 == 0),
    }


def end(device, seed):
    """Return what was wrong with one exit, or None."""
    how = list(ENDINGS)[seed % len(ENDINGS)]
    status, last = ENDINGS[how]
    done = python(*OPTIONS, PROGRAM, seed, device, how, **settings(device, seed))
    lines = done.stderr.splitlines()
    told = any(line.startswith(last) for line in lines) if last else not lines
    clean = not any("ignored" in line or "Fatal" in line for line in lines)
    if (done.returncode, done.stdout, told, clean) == (status, "alive\n", True, True):
        return None
    return f"seed {seed}, {how}: {done.returncode} {done.stdout!r}\n{done.stderr}"


def test_every_exit_with_live_memory_is_clean(device):
    with ThreadPoolExecutor(os.cpu_count()) as processes:
        wrong = list(processes.map(partial(end, device.type), range(EXITS)))
    assert [text for text in wrong if text] == []
