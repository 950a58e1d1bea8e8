"""The command line: ``python -m xdev info | bench | timeit | memory | cache``."""

from xdev.cli.commands import main

__all__ = ["main"]
