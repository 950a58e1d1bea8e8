"""``xdev cache``: the compiled code that is kept on disk."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Any

from xdev import _config, _disk_cache
from xdev.memory.reports import text_of

if TYPE_CHECKING:
    from pathlib import Path

DAY = 24 * 60 * 60  # seconds
AGES = ((DAY, "d"), (60 * 60, "h"), (60, "min"), (1, "s"))
EXAMPLES = """
examples:
  xdev cache                   list what is kept, the last used first
  xdev cache clear             remove all of it
  xdev cache clear --older 30  remove what was not used for 30 days
  xdev cache path              print the folder
"""


def add_to(commands: Any) -> None:
    """Add the command to a parser's commands."""
    command = commands.add_parser(
        "cache",
        help="list or clear the compiled code that is kept on disk",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.set_defaults(run=listed)
    actions = command.add_subparsers(metavar="action")
    clear = actions.add_parser("clear", help="remove compiled code")
    clear.add_argument(
        "--older",
        type=days,
        default=0.0,
        metavar="DAYS",
        help="only what was not used for so long",
    )
    clear.set_defaults(run=cleared)
    path = actions.add_parser("path", help="print the folder")
    path.set_defaults(run=told)


def listed(_: argparse.Namespace) -> int:
    """Print the folder and its entries, the last used first."""
    found = sorted(_disk_cache.files(), key=_last_use, reverse=True)
    print(summary())
    for problem in problems():
        print(problem)
    if found:
        print(f"{'kind':<8} {'function':<24} {'size':>10} {'age':>7} {'hits':>6}")
    now = time.time()
    for path, status in found:
        hits, made, name = _disk_cache.described(path) or (0, now, "(damaged)")
        size, old = text_of(status.st_size), _age(now - made)
        print(f"{path.parent.name:<8} {name:<24} {size:>10} {old:>7} {hits:>6}")
    return 0


def cleared(options: argparse.Namespace) -> int:
    """Remove the entries that were not used for some time, and say how many."""
    latest = time.time() - options.older * DAY
    old = [(path, s) for path, s in _disk_cache.files() if s.st_mtime <= latest]
    for path, _ in old:
        path.unlink(missing_ok=True)
    total = text_of(sum(status.st_size for _, status in old))
    print(f"{_config.cache_dir()}: {len(old)} entries removed, {total}")
    return 0


def told(_: argparse.Namespace) -> int:
    """Print the folder."""
    print(_config.cache_dir())
    return 0


def summary() -> str:
    """Return the folder, the number of its entries and their size."""
    sizes = [status.st_size for _, status in _disk_cache.files()]
    return f"{_config.cache_dir()}: {len(sizes)} entries, {text_of(sum(sizes))}"


def problems() -> list[str]:
    """Return why compiled code cannot be kept, in no line or one."""
    problem = _disk_cache.problem()
    way = "set XDEV_CACHE_DIR to a folder of your own"
    text = f"nothing is kept on disk, only in each process: {problem}; {way}"
    return [] if problem is None else [text]


def days(text: str) -> float:
    """Return a number of days, which is not negative."""
    number = float(text)
    if not 0 <= number < float("inf"):
        raise ValueError(text)
    return number


def _last_use(file: tuple[Path, Any]) -> float:
    when: float = file[1].st_mtime
    return when


def _age(seconds: float) -> str:
    """Return a time in its largest whole unit.

    >>> _age(3 * DAY + 5), _age(70), _age(-1)
    ('3 d', '1 min', '0 s')
    """
    for size, unit in AGES:
        if seconds >= size:
            return f"{int(seconds / size)} {unit}"
    return "0 s"
