"""What changed since an earlier measurement of the same."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from xdev.errors import ConfigurationError
from xdev.timing.tables import aligned
from xdev.timing.verdict import Ratio, ratio_of_unpaired

if TYPE_CHECKING:
    from collections.abc import Mapping

# Another process has another memory layout, and a machine other neighbours: less than
# a tenth is no regression.
MARGIN = 1.1
# What makes a machine, of the environment in a record.
MACHINE = ("processor", "cores", "cuda")


@final
@dataclass(frozen=True, slots=True)
class Changes:
    """What became of each row since a baseline; ``str`` gives the table.

    Parameters
    ----------
    ratios : dict of str to Ratio
        The time of each row that both have over its time then.
    added, gone : tuple of str
        Rows that only the new measurement has, and those that only the baseline has.
    """

    ratios: dict[str, Ratio]
    added: tuple[str, ...]
    gone: tuple[str, ...]

    @property
    def regressed(self) -> tuple[str, ...]:
        """The rows that are slower."""
        slower = (n for n, ratio in self.ratios.items() if ratio.verdict == "slower")
        return tuple(slower)

    def __str__(self) -> str:
        """Return a table: ratio, its 95 % interval and verdict.

        Rows that had too few runs stand below it.
        """
        cells = [["since the baseline", "ratio", "95 %", "verdict"]]
        for name, ratio in self.ratios.items():
            interval = f"{ratio.low:.3g} to {ratio.high:.3g}" if ratio.sure else ""
            cells.append([name, f"{ratio.middle:.3g}", interval, ratio.verdict])
        cells += [[name, "", "", "new"] for name in self.added]
        cells += [[name, "", "", "gone"] for name in self.gone]
        few = [name for name, ratio in self.ratios.items() if not ratio.enough]
        lines = [f"{name}: too few runs for a verdict, now or then" for name in few]
        return "\n".join([aligned(cells), *lines])


def changes(
    record: Mapping[str, Any], baseline: Path | str | Mapping[str, Any]
) -> Changes:
    """Compare two records of ``environment`` and ``rows``, or the new with a file."""
    then: Mapping[str, Any] = (
        json.loads(Path(baseline).read_text(encoding="utf-8"))
        if isinstance(baseline, Path | str)
        else baseline
    )
    _check_machine(record["environment"], then["environment"])
    new, old = (
        {row["name"]: row["samples"] for row in each["rows"]} for each in (record, then)
    )
    return Changes(
        {
            name: ratio_of_unpaired(times, old[name], margin=MARGIN)
            for name, times in new.items()
            if name in old
        },
        tuple(name for name in new if name not in old),
        tuple(name for name in old if name not in new),
    )


def _check_machine(here: Mapping[str, Any], there: Mapping[str, Any]) -> None:
    for key in MACHINE:
        if here.get(key) != there.get(key):
            raise ConfigurationError(
                f"the baseline is of another machine, its {key} being "
                f"{there.get(key)!r}, not {here.get(key)!r}: save a new one here"
            )
