"""``xdev memory``: the memory report of the devices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from xdev import memory

if TYPE_CHECKING:
    import argparse


def add_to(commands: Any) -> None:
    """Add the command to a parser's commands."""
    command = commands.add_parser("memory", help="print the memory report")
    command.set_defaults(run=run)


def run(_: argparse.Namespace) -> int:
    """Print the report; return 0."""
    print(memory.summary())
    return 0
