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
from typing import TYPE_CHECKING, Any

from xdev._tracebacks import frames_from, show
from xdev.cli.info import add_command, add_json_to, print_json
from xdev.timing.sampling import SOURCE, begin_code

if TYPE_CHECKING:
    from xdev.timing import Timing

REPEAT, PRECISION = 5, 3
UNITS = {"sec": 1.0, "msec": 1e-3, "usec": 1e-6, "nsec": 1e-9}
UNRELIABLE = 4  # times the best


def add_to(commands: Any) -> None:
    """Add the command and its options to a parser's commands."""
    command = add_command(commands, "timeit", run)
    option = command.add_argument
    option("-n", "--number", type=int, default=0, help="how many times to run it")
    about = "how many times to repeat that (default: %(default)s)"
    option("-r", "--repeat", type=int, default=REPEAT, help=about)
    about = "a statement that runs before each repetition, and is not timed"
    option("-s", "--setup", action="append", default=[], help=about)
    about = "measure process time, not wall time"
    option("-p", "--process", action="store_true", help=about)
    option("-u", "--unit", choices=tuple(UNITS), help="the unit of the times")
    about = "print every time; twice or more: with more digits"
    option("-v", "--verbose", action="count", default=0, help=about)
    add_json_to(command)
    option("statement", nargs=argparse.REMAINDER, help="what is timed (default: pass)")


def run(options: argparse.Namespace) -> int:
    """Time a statement, as python -m timeit does, to the end of its work.

    Several statements, or several -s, are lines of one. Without -n, it is the first
    of 1, 2, 5, 10, 20, ... whose run takes 0.2 s.

    Examples
    --------
      xdev timeit "sum(range(100))"
      xdev timeit -s "import xdev as xp; x = xp.ones(10**6)" "xp.sin(x)"
      xdev timeit -n 1000 -r 3 -u usec -s "import math" "math.sqrt(2)"
      xdev timeit --json "sorted([3, 1, 2])"   every run [s], for a program
    """
    lines = options.statement[options.statement[:1] == ["--"] :]
    statement = "\n".join(lines) or "pass"
    setup = "\n".join(options.setup) or "pass"
    sys.path.insert(0, os.curdir)  # the user's modules, as with `python -m timeit`
    clock = time.process_time if options.process else time.perf_counter
    digits = PRECISION + max(0, options.verbose - 1)
    verbose = options.verbose and not options.json

    def tell(number: int, seconds: float) -> None:
        if verbose:
            print(f"{_counted(number)} -> {seconds:.{digits}g} secs")

    try:
        names = {"__name__": "__main__"}
        candidate = begin_code(statement, setup, names, clock=clock)
        number, repeat = options.number or None, max(1, options.repeat)
        timing = candidate.measure(number, repeat, tell=tell)
    except BaseException as error:  # SystemExit too, as the standard library has it
        if not _is_of_the_user(error):
            raise
        source = [f"{line}\n" for line in f"{setup}\n{statement}".split("\n")]
        linecache.cache[SOURCE] = len(source), None, source, SOURCE
        # Not the interpreter's own, which reads files and not the lines above.
        show(type(error), error, error.__traceback__, traceback.print_exception)
        return 1
    if options.json:
        print_json(asdict(timing) | {"notes": timing.notes})
        return 0
    if verbose and not number:
        print()
    _report(timing, options.unit, digits, verbose=verbose)
    return 0


def _is_of_the_user(error: BaseException) -> bool:
    """Say whether the user's code raised it, or the user; leave its own calls alone."""
    frames = frames_from(error, SOURCE)
    wrong = isinstance(error, SyntaxError) and error.filename == SOURCE
    wrong = wrong or isinstance(error, UnicodeEncodeError)  # bytes of no encoding
    if frames or wrong or isinstance(error, KeyboardInterrupt):
        error.__traceback__ = frames
        return True
    return False


def _counted(number: int) -> str:
    return f"{number} loop{'s' * (number != 1)}"


def _report(timing: Timing, unit: str | None, digits: int, *, verbose: bool) -> None:
    def written(seconds: float) -> str:
        """Return a time in the unit asked for, or the largest not above it."""
        fitting = (unit for unit, scale in UNITS.items() if seconds >= scale)
        chosen = unit or next(fitting, "nsec")
        return f"{seconds / UNITS[chosen]:.{digits}g} {chosen}"

    best, worst = written(timing.best), written(timing.worst)
    if verbose:
        print(f"raw times: {', '.join(map(written, timing.all_runs))}\n")
    print(f"{_counted(timing.loops)}, best of {timing.repeat}: {best} per loop")
    print(*timing.notes, sep="\n", end="\n" * bool(timing.notes))
    if timing.worst >= UNRELIABLE * timing.best:
        text = (
            f"The test results are likely unreliable. The worst time ({worst}) was "
            f"more than four times slower than the best time ({best})."
        )
        warnings.warn_explicit(text, UserWarning, "", 0)
