"""The command line: ``python -m xdev info | bench | memory``."""

from xdev.cli.commands import main

__all__ = ["main"]
