"""``xdev timeit``: the flags and the lines of ``python -m timeit``."""

from __future__ import annotations

import argparse
import linecache
import os
import sys
import time
import traceback
import warnings
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any

from xdev.cli.info import add_command, add_json_to, print_json
from xdev.timing.sampling import RUN_SECONDS, SETUP, STATEMENT, begin_code

if TYPE_CHECKING:
    from xdev.timing.sampling import Candidate

REPEAT, PRECISION = 5, 3
UNITS = {"sec": 1.0, "msec": 1e-3, "usec": 1e-6, "nsec": 1e-9}
UNRELIABLE = 4  # times the best
EXAMPLES = """
Several statements, or several -s, are lines of one. Without -n, it is the first
of 1, 2, 5, 10, 20, ... whose run takes 0.2 s.

examples:
  xdev timeit "sum(range(100))"
  xdev timeit -s "import xdev as xp; x = xp.ones(10**6)" "xp.sin(x)"
  xdev timeit -n 1000 -r 3 -u usec -s "import math" "math.sqrt(2)"
  xdev timeit --json "sorted([3, 1, 2])"   every run [s], for a program
"""


def add_to(commands: Any) -> None:
    """Add the command and its options to a parser's commands."""
    about = "time a statement, as python -m timeit does, to the end of its work"
    command = add_command(commands, "timeit", run, help=about, epilog=EXAMPLES)
    option = command.add_argument
    option("-n", "--number", type=int, default=0, help="how many times to run it")
    option(
        *("-r", "--repeat"),
        type=int,
        default=REPEAT,
        help="how many times to repeat that (default: %(default)s)",
    )
    option(
        *("-s", "--setup"),
        action="append",
        help="a statement that runs before each repetition, and is not timed",
    )
    option(
        *("-p", "--process"),
        action="store_true",
        help="measure process time, not wall time",
    )
    option("-u", "--unit", choices=tuple(UNITS), help="the unit of the times")
    option(
        *("-v", "--verbose"),
        action="count",
        default=0,
        help="print every time; twice or more: with more digits",
    )
    add_json_to(command)
    option("statement", nargs=argparse.REMAINDER, help="what is timed (default: pass)")


def run(options: argparse.Namespace) -> int:
    """Print what was measured; return 1 with the error where the code raised."""
    lines = options.statement[options.statement[:1] == ["--"] :]
    statement = "\n".join(lines) or "pass"
    setup = "\n".join(options.setup or ()) or "pass"
    sys.path.insert(0, os.curdir)  # the user's modules, as with `python -m timeit`
    clock = time.process_time if options.process else time.perf_counter
    options.digits = PRECISION + max(0, options.verbose - 1)
    try:
        names = {"__name__": "__main__"}
        candidate = begin_code(statement, setup, names, clock=clock)
        _measure(candidate, options)
    except BaseException as error:  # SystemExit too, as the standard library has it
        if not _is_of_the_user(error):
            raise
        _show(error, setup, statement)
        return 1
    if options.json:
        timing = candidate.timing()
        print_json(asdict(timing) | {"notes": timing.notes})
    else:
        _report(candidate, options)
    return 0


def _is_of_the_user(error: BaseException) -> bool:
    """Say whether the user's code raised it, or the user; leave its own calls alone."""
    frames = error.__traceback__
    while frames and frames.tb_frame.f_code.co_filename != STATEMENT:
        frames = frames.tb_next
    if frames or isinstance(error, KeyboardInterrupt):
        error.__traceback__ = frames
        return True
    if isinstance(error, SyntaxError) and error.filename in (SETUP, STATEMENT):
        error.__traceback__ = None
        return True
    return False


def _show(error: BaseException, setup: str, statement: str) -> None:
    """Print the error with the lines of the source; the setup's follow the others."""
    for name, source in ((SETUP, setup), (STATEMENT, f"{statement}\n{setup}")):
        linecache.cache[name] = len(source), None, source.split("\n"), name
    traceback.print_exception(error)


def _written(seconds: float, options: argparse.Namespace) -> str:
    """Return a time in the unit that was asked for, or the largest not above it."""
    fitting = (unit for unit, scale in UNITS.items() if seconds >= scale)
    unit = options.unit or next(fitting, "nsec")
    return f"{seconds / UNITS[unit]:.{options.digits}g} {unit}"


def _measure(candidate: Candidate, options: argparse.Namespace) -> None:
    verbose = options.verbose and not options.json

    def tell(number: int, seconds: float) -> None:
        if verbose:
            loops = f"{number} loop{'s' * (number != 1)}"
            print(f"{loops} -> {seconds:.{options.digits}g} secs")

    candidate.settle(options.number or None, RUN_SECONDS, tell=tell)
    if verbose and not options.number:
        print()
    for _ in range(max(1, options.repeat)):
        candidate.sample()


def _report(candidate: Candidate, options: argparse.Namespace) -> None:
    timing, write = candidate.timing(), partial(_written, options=options)
    if options.verbose:
        print(f"raw times: {', '.join(map(write, timing.all_runs))}\n")
    plural = "s" * (timing.loops != 1)
    print(
        f"{timing.loops} loop{plural}, best of {timing.repeat}: "
        f"{write(timing.best)} per loop"
    )
    for note in timing.notes:
        print(note)
    if timing.worst >= UNRELIABLE * timing.best:
        text = (
            "The test results are likely unreliable. The worst time "
            f"({write(timing.worst)}) was more than four times slower than the best "
            f"time ({write(timing.best)})."
        )
        warnings.warn_explicit(text, UserWarning, "", 0)
