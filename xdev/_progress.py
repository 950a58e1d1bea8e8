"""Progress of long work: one line that a terminal or a notebook shows, and no other."""

from __future__ import annotations

import sys
import time
from typing import Self, final

LINE = 79  # characters: a terminal's last column would wrap
BAR = 30  # characters
PAUSE = 0.1  # s between two looks


@final
class Progress:
    """A bar on standard error, for as long as a ``with`` block lasts.

    Where standard error is neither a terminal nor a notebook's, nothing is written.
    """

    def __init__(self, title: str, total: int | None, *, shown: bool = True) -> None:
        self._title, self._total, self._done = title, total, 0
        self._start = self._shown_at = time.monotonic()
        self._shown = bool(shown and sys.stderr) and (
            sys.stderr.isatty() or "ipykernel" in sys.modules
        )

    def __enter__(self) -> Self:
        self._show()
        return self

    def update(self) -> None:
        """Count a step, and show it unless another was shown just now."""
        self._done += 1
        if self._shown and time.monotonic() >= self._shown_at + PAUSE:
            self._show()

    def __exit__(self, *_: object) -> None:
        self._write("")

    def _show(self) -> None:
        self._shown_at = time.monotonic()
        count = f"{self._done:,}"
        if self._total:
            full = min(BAR, BAR * self._done // self._total)
            count = f"[{'#' * full:<{BAR}}] {count}/{self._total:,}"
        self._write(f"{self._title} {count}, {self._shown_at - self._start:.0f} s")

    def _write(self, text: str) -> None:
        if self._shown:
            end = "\r" if text else f"\r{'':{LINE}}\r"
            sys.stderr.write(f"{end}{text[:LINE]:<{LINE if text else 0}}")
            sys.stderr.flush()
