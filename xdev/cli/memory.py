"""``xdev memory``: the memory report, of this process or of a program; its picture."""

from __future__ import annotations

import argparse
import io
import pickle
import runpy
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, final

from xdev import _optional, _tracebacks, memory
from xdev.cli.info import add_command, print_json
from xdev.device import Device, default_device
from xdev.errors import ConfigurationError
from xdev.memory import registry, tracking
from xdev.memory.history import draw, snapshot_of

if TYPE_CHECKING:
    from collections.abc import Iterable

SAVED = ".pickle"  # how the name of a saved snapshot ends


def add_to(commands: Any) -> None:
    """Add the command to a parser's commands."""
    option = add_command(commands, "memory", run).add_argument
    about = "draw bytes over time and where the blocks lie"
    option("--plot", type=Path, metavar="FILE.png", help=about)
    about = "save the events and the blocks in PyTorch's format"
    option("--snapshot", type=Path, metavar="FILE.pickle", help=about)
    about = "a Python program and its arguments, or a saved snapshot (.pickle)"
    option("program", nargs=argparse.REMAINDER, help=about)


def run(options: argparse.Namespace) -> int:
    """Print the memory report, of a program too; draw it.

    Without a program it is this process that is reported.

    Examples
    --------
      xdev memory program.py --its --options     run a program and report
      xdev memory --plot out.png program.py      draw its timeline and its blocks
      xdev memory --snapshot out.pickle program.py
                                                 for https://pytorch.org/memory_viz
      xdev memory --plot out.png out.pickle      draw what was saved
      xdev memory --json program.py > out.json   for a program; what program.py
                                                 prints goes to standard error
    """
    if options.plot:
        _optional.matplotlib_figure()  # missing, it is missed before the program runs
    for path in (options.plot, options.snapshot):
        if path and not path.parent.is_dir():
            raise FileNotFoundError(f"{path}: there is no such folder")
    words = options.program
    if not words:
        _report([default_device()], options, [memory.summary()])
        _write(options)
        return 0
    program = Path(words[0])
    if not program.is_file():
        raise FileNotFoundError(f"{program}: there is no such file")
    if program.suffix == SAVED:
        if not options.plot:
            raise ConfigurationError(f"{program} can be drawn: give --plot FILE.png")
        _write(options, _read(program))
        return 0
    with tracking.track():
        memory.record_history()
        try:
            with redirect_stdout(sys.stderr if options.json else sys.stdout):
                status, held = _run(words)
            used = list(dict.fromkeys(owner for owner, _ in registry.everything()))
            _report(used, options, [*map(memory.summary, used), tracking.report()])
            _write(options)
        finally:
            memory.record_history(enabled=False)
        del held  # so long, the program's arrays were as at its end
    return status


def _report(
    used: list[Device], options: argparse.Namespace, lines: Iterable[str]
) -> None:
    """Print the lines, or what they say of the devices in JSON's types."""
    if options.json:
        print_json({str(device): _facts(device) for device in used})
    else:
        print(*lines, sep="\n")


def _facts(device: Device) -> dict[str, Any]:
    """Return a device's memory, its limit, each pool's figures and live blocks."""
    lines = tracking.outstanding_by_line(device)
    return {
        "total": registry.total(device),
        "limit": memory.get_limit(device),
        "pools": {
            kind: memory.stats(device, kind)
            for where, kind in registry.everything()
            if where == device
        },
        "outstanding": [
            {key: getattr(line, key) for key in ("where", "pool", "count", "nbytes")}
            for line in lines
        ],
    }


def _run(words: list[str]) -> tuple[int, object]:
    """Run a program; return its exit status, and what keeps its variables."""
    before = sys.argv, sys.path
    sys.argv, sys.path = words, [str(Path(words[0]).resolve().parent), *sys.path]
    try:
        return 0, runpy.run_path(words[0], run_name="__main__")
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0, end
        print(end.code, file=sys.stderr)
        return 1, end
    except BaseException as error:  # noqa: BLE001 - a report is wanted all the same
        # From where the program begins, as Python shows it that runs the program.
        error.__traceback__ = _tracebacks.frames_from(error, words[0])
        _tracebacks.show(type(error), error, error.__traceback__)
        return 1, error
    finally:
        sys.argv, sys.path = before


def _write(options: argparse.Namespace, saved: dict[str, Any] | None = None) -> None:
    snapshot = saved or snapshot_of(registry.everything().values())
    if options.snapshot:
        options.snapshot.write_bytes(pickle.dumps(snapshot))
    if options.plot:
        draw(snapshot, options.plot)


@final
class _PlainData(pickle.Unpickler):
    """Reads numbers, texts and their collections; a file can run no code."""

    def find_class(self, module: str, name: str) -> NoReturn:
        """Refuse whatever is more."""
        raise pickle.UnpicklingError(f"it holds {module}.{name}")


def _read(path: Path) -> dict[str, Any]:
    """Return a saved snapshot."""
    saved = io.BytesIO(path.read_bytes())
    try:
        snapshot = _PlainData(saved).load()
        return {key: snapshot[key] for key in ("segments", "device_traces", "pools")}
    except Exception as error:  # damaged bytes may raise any
        raise ConfigurationError(
            f"{path} is not a snapshot that xdev memory --snapshot saved: {error!r}"
        ) from error
