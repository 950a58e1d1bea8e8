"""Notebooks: ``%load_ext xdev`` gives ``%xtimeit`` and ``%%xtimeit``."""

from xdev.jupyter.magics import TimingMagics

__all__ = ["TimingMagics"]
