"""The command line: ``xdev info | bench | timeit | memory | cache | doctor``.

Examples
--------
  xdev doctor                    does everything work here, and what if not?
  xdev bench                     how fast is a ufunc on this machine's devices?
  xdev timeit "sum(range(9))"    how long does a statement take?
  xdev memory program.py         what does it hold, and which line made that?
  xdev COMMAND --help            more, with examples

Every command takes --json. Settings are variables XDEV_*: xdev info lists them.
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING, Any, final

import xdev
from xdev import _config
from xdev.cli import doctor, info, memory, timing
from xdev.errors import ConfigurationError, DeviceUnavailableError, XdevError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["main"]
# As argparse's own: the command was not understood, or cannot be done here.
MISUSE = 2
FAILED = 1
CLOSED = 128 + 13  # what a shell has for a command that SIGPIPE ended


@final
class Parser(argparse.ArgumentParser):
    """A parser whose commands name their own usage for an option that they lack."""

    def parse_known_args(self, *args: Any, **keywords: Any) -> Any:
        """Parse; refuse what is not known here, not in the parser above."""
        options, unknown = super().parse_known_args(*args, **keywords)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return options, unknown


def parser() -> Parser:
    """Return the parser of the whole command line."""
    whole = Parser(
        prog="xdev",
        description="Array code written once, run on a CPU or a CUDA GPU.",
        epilog=(__doc__ or "").partition("\n\n")[2],
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    whole.add_argument(
        "--version", action="version", version=f"xdev {xdev.__version__}"
    )
    commands = whole.add_subparsers(required=True, metavar="command")
    for module in (doctor, info, timing, memory):
        module.add_to(commands)
    return whole


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command of these words, or of this process's; return the exit status.

    0; 1 where a check or a measurement failed; 2 where the command line or a setting is
    wrong; 141 where nobody reads on, as in ``xdev cache | head``.
    """
    try:
        words = sys.argv[1:] if arguments is None else arguments
        options = parser().parse_args(words or ["--help"])
        if options.run is not doctor.run:  # which tells of each setting itself
            _config.values()
        status = int(options.run(options))
        sys.stdout.flush()  # here, where it is known what a closed pipe means
    except BrokenPipeError:
        # What is left in the buffer has nowhere to go: Python would complain at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return CLOSED
    except (ConfigurationError, DeviceUnavailableError) as error:
        print(f"xdev: {error}", file=sys.stderr)
        return MISUSE
    except (XdevError, MemoryError, OSError) as error:
        print(f"xdev: {error}", file=sys.stderr)
        return FAILED
    return status
