"""``xdev bench`` times a ufunc on every kind of array, ``xdev timeit`` a statement."""

from __future__ import annotations

import argparse
import json
import linecache
import os
import shutil
import sys
import time
import traceback
import warnings
from dataclasses import asdict
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, final

import numpy as np

import xdev
from xdev import _optional
from xdev._tracebacks import frames_from, show
from xdev.cli.info import add_command, in_columns, print_json
from xdev.device import Device, default_device, use_device
from xdev.errors import ConfigurationError, XdevError
from xdev.timing import compare, verdict
from xdev.timing.environment import environment
from xdev.timing.sampling import SOURCE, begin_code

if TYPE_CHECKING:
    from collections.abc import Callable

    from xdev.timing import Timing


Call = partial[Any]
Triple = tuple[Any, ...]  # x, y and out


def add(x: Any, y: Any) -> Any:
    """Return ``x + y``, of scalars: what every library makes its ufunc from."""
    return x + y


@final
class Stage:
    """The arrays and functions of one contest, each made when a row first asks."""

    def __init__(self, n: int, dtype: np.dtype[Any], device: Device) -> None:
        self.n, self.dtype, self.device = n, dtype, device
        self.ufunc = xdev.vectorize(add)

    @cached_property
    def host(self) -> Triple:
        """Random x and y, small enough that integers do not overflow; and out."""
        numbers = np.random.default_rng(0).random((2, self.n))
        if self.dtype.kind in "iu":
            numbers *= 60
        x, y = numbers.astype(self.dtype)
        return x, y, np.empty_like(x)

    @cached_property
    def arrays(self) -> Triple:
        """The same as arrays of xdev on the device."""
        return tuple(xdev.asarray(x, device=self.device, copy=True) for x in self.host)

    @cached_property
    def cupy_arrays(self) -> Triple:
        """The same as CuPy's own arrays."""
        return tuple(map(_optional.cupy().asarray, self.host))

    @cached_property
    def numba_arrays(self) -> Triple:
        """The same as Numba device arrays."""
        return tuple(map(_optional.numba_cuda().to_device, self.host))

    @cached_property
    def numba(self) -> Any:
        """The function by Numba, of this device."""
        if self.device.type == "cuda":
            _optional.numba_cuda()
        numba = _optional.numba()
        scalar = numba.from_dtype(self.dtype)
        return numba.vectorize([scalar(scalar, scalar)], target=self.device.type)(add)


def _call(function: Any, arrays: Triple) -> Call:
    return partial(function, *arrays[:2])


def _into(function: Any, arrays: Triple) -> Call:
    return partial(function, *arrays[:2], out=arrays[2])


def _round_trip(there: Any, function: Any, back: Any, arrays: Triple) -> Call:
    """Return what uploads, calls and downloads."""
    return _call(lambda x, y: back(function(there(x), there(y))), arrays)


def _xdev_round_trip(stage: Stage) -> Call:
    """Return the row's call; on the CPU there is nothing to move."""
    if stage.device.type == "cpu":
        return _call(stage.ufunc, stage.host)
    there = partial(xdev.to_device, device=stage.device)
    return _round_trip(there, stage.ufunc, xdev.to_numpy, stage.host)


def _cupy_round_trip(stage: Stage) -> Call:
    cupy = _optional.cupy()
    return _round_trip(cupy.asarray, cupy.add, cupy.asnumpy, stage.host)


BOTH, CPU, CUDA = ("cpu", "cuda"), ("cpu",), ("cuda",)
# name: (the devices on which the row makes sense, what makes its call)
ROWS: dict[str, tuple[tuple[str, ...], Callable[[Stage], Call]]] = {
    "NumPy host arrays": (BOTH, lambda s: _call(np.add, s.host)),
    "NumPy host arrays out=": (BOTH, lambda s: _into(np.add, s.host)),
    "Numba host arrays": (CPU, lambda s: _call(s.numba, s.host)),
    "Numba host arrays out=": (CPU, lambda s: _into(s.numba, s.host)),
    "Numba CUDA host arrays": (CUDA, lambda s: _call(s.numba, s.host)),
    "Numba device arrays": (CUDA, lambda s: _call(s.numba, s.numba_arrays)),
    "Numba device arrays out=": (CUDA, lambda s: _into(s.numba, s.numba_arrays)),
    "Numba on CuPy arrays out=": (CUDA, lambda s: _into(s.numba, s.cupy_arrays)),
    "CuPy host arrays": (CUDA, _cupy_round_trip),
    "CuPy arrays": (CUDA, lambda s: _call(_optional.cupy().add, s.cupy_arrays)),
    "CuPy arrays out=": (CUDA, lambda s: _into(_optional.cupy().add, s.cupy_arrays)),
    "xdev host arrays": (BOTH, _xdev_round_trip),
    "xdev device arrays": (BOTH, lambda s: _call(s.ufunc, s.arrays)),
    "xdev device arrays out=": (BOTH, lambda s: _into(s.ufunc, s.arrays)),
    "xdev on Numba arrays out=": (CUDA, lambda s: _into(s.ufunc, s.numba_arrays)),
    "xdev on CuPy arrays out=": (CUDA, lambda s: _into(s.ufunc, s.cupy_arrays)),
}


def contest(stage: Stage) -> tuple[dict[str, Call], dict[str, str]]:
    """Return the rows that can be timed here, and for each other row why it cannot."""
    candidates, left_out = {}, {}
    for name, (devices, make) in ROWS.items():
        if stage.device.type not in devices:
            other = devices[0]
            left_out[name] = Device(other).reason or f"they are of --device {other}"
            continue
        try:
            candidates[name] = make(stage)
        except Exception as error:
            # A peer that lacks a dtype, or is broken, must not end the contest.
            if name.startswith("xdev"):
                raise
            left_out[name] = f"{type(error).__name__}: {error}".splitlines()[0]
    return candidates, left_out


DTYPES = (
    *("float16", "float32", "float64", "complex64", "complex128"),
    *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
)


def add_to(commands: Any) -> None:
    """Add the two commands and their options to a parser's commands."""
    option = add_command(commands, "bench", bench, unset=None).add_argument
    option("--n", type=_size, default=100_000, help="elements (default: %(default)s)")
    about = f"{', '.join(DTYPES)} (default: %(default)s)"
    option("--dtype", choices=DTYPES, default="float32", metavar="TYPE", help=about)
    device = _checked(lambda text: _timed(Device(text).require()), "use")
    option("--device", type=device, help="cpu, cuda or cuda:N (default: XDEV_DEVICE)")
    file: dict[str, Any] = {"nargs": "?", "const": True, "metavar": "FILE"}
    about = "write every sample to FILE; without FILE, print them and no table"
    option("--json", type=_checked(verdict.writable, "write"), help=about, **file)
    record = _checked(verdict.read_record, "read")
    about = "what an earlier --json wrote: exit 1 where a row has become slower"
    option("--baseline", type=record, metavar="FILE", help=about)
    option = add_command(commands, "timeit", timeit).add_argument
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
    option("statement", nargs=argparse.REMAINDER, help="what is timed (default: pass)")


def _size(text: str) -> int:
    if not (text.isdecimal() and int(text) > 0):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a whole number of at least 1"
        )
    return int(text)


def _timed(device: Device) -> Device:
    if device.type not in ("cpu", "cuda"):
        raise ConfigurationError(f"{device} is not timed: use --device cpu or cuda")
    return device


def _checked(read: Callable[[str], Any], use: str) -> Callable[[str], Any]:
    """Return what reads an argument at once: a wrong one is known before the timing."""

    def check(text: str) -> Any:
        try:
            return read(text)
        except (OSError, XdevError) as error:
            where = f"cannot {use} {text!r}: " if isinstance(error, OSError) else ""
            raise argparse.ArgumentTypeError(f"{where}{error}") from error

    return check


def bench(options: argparse.Namespace) -> int:
    """Time f(x, y) = x + y on host and device arrays, with and without out=.

    Examples
    --------
      xdev bench                            100,000 float32 on the default device
      xdev bench --n 10000000 --device cpu  larger arrays, on the CPU
      xdev bench --json before.json         keep every sample, and later
      xdev bench --baseline before.json     end with 1 where a row is slower
      xdev bench --json | python -m json.tool
    """
    device = options.device or _timed(default_device())
    task = {"n": options.n, "dtype": options.dtype, "device": str(device)}
    if options.baseline:  # before minutes of timing
        for key, value in task.items():
            if (old := options.baseline.get(key)) != value:
                raise ConfigurationError(f"the baseline has {key} {old}, not {value}")
        verdict.check_machine(environment(), options.baseline)
    dtype = np.dtype(options.dtype)
    candidates, left_out = contest(Stage(options.n, dtype, device))
    moved = {  # where its arrays are, a call reads two and writes one
        name: 3 * options.n * dtype.itemsize
        for name in candidates
        if device.type == "cpu" or "host" not in name
    }
    with warnings.catch_warnings():
        # Numba's advice on its own launches: no part of the table.
        warnings.filterwarnings("ignore", ".*Grid size")
        with use_device(device):  # where calls on host arrays do their work
            comparison = compare(candidates, nbytes=moved, progress=True)
    record = {**task, **comparison.as_dict(), "left_out": left_out}
    changes = options.baseline and comparison.since(options.baseline)
    status = int(bool(changes and changes.regressed))
    if options.json is True:
        print_json(record)
        return status
    if options.json:
        options.json.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    print(f"x + y of {options.n:,} {options.dtype} on {device}\n")
    print(comparison.text(shutil.get_terminal_size().columns))
    if device.type == "cuda":
        print("\nhost arrays: upload, call and download", end="")
    print()
    for reason in dict.fromkeys(left_out.values()):
        names = (name for name in left_out if left_out[name] == reason)
        print(in_columns(f"left out: {', '.join(names)}", 2))
        print(in_columns(f"  because {reason}", 4))
    if changes:
        print(f"\n{changes}")
    return status


REPEAT, PRECISION = 5, 3
UNITS = {"sec": 1.0, "msec": 1e-3, "usec": 1e-6, "nsec": 1e-9}
UNRELIABLE = 4  # times the best


def timeit(options: argparse.Namespace) -> int:
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
