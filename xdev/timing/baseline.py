"""What changed since an earlier measurement of the same."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, final

from xdev.errors import ConfigurationError
from xdev.timing.tables import aligned
from xdev.timing.verdict import Ratio, ratio_of_unpaired

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

# Another process has another memory layout, and a machine other neighbours: less than
# a tenth is no regression.
MARGIN = 1.1
# What makes a machine, of the environment in a record.
MACHINE = ("processor", "cores")
LONGEST = 60  # of a row in a message [characters]


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
    """Compare two records of ``environment`` and ``rows``, or the new with a file.

    Raises
    ------
    ConfigurationError
        The baseline is no record, or was measured elsewhere or otherwise.
    """
    then = read(baseline)
    check(record["environment"], record["rows"], then)
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


def read(baseline: Path | str | Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a record, of a file or as it is.

    Raises
    ------
    ConfigurationError
        It is none, or has a row without samples.
    OSError
        The file cannot be read.
    """
    where, found = "the baseline", cast("Any", baseline)
    if isinstance(baseline, Path | str):
        where = repr(str(baseline))
        try:
            found = json.loads(Path(baseline).read_text(encoding="utf-8"))
        except ValueError as error:
            raise ConfigurationError(f"{where} is not JSON: {error}") from error
    match found:
        case {"environment": {}, "rows": [*rows]}:
            record: Mapping[str, Any] = found
        case _:
            raise ConfigurationError(
                f"{where} is not a record of compare, sweep or bench, which has an "
                "'environment' and 'rows'"
            )
    for row in rows:
        if not _is_row(row):
            raise ConfigurationError(
                f"{where} has a row that lacks a 'name', or times as 'samples': "
                f"{str(row)[:LONGEST]}"
            )
    return record


def _is_row(row: object) -> bool:
    match row:
        case {"name": str(), "samples": [_, *_] as times}:
            return all(isinstance(t, int | float) and t > 0 for t in times)
    return False


def check(
    environment: Mapping[str, Any],
    rows: Iterable[Mapping[str, Any]],
    baseline: Mapping[str, Any],
) -> None:
    """Refuse a baseline of another machine, device or kind of measurement.

    Parameters
    ----------
    environment : mapping
        Of the new measurement.
    rows : iterable of mapping
        ``name`` and ``conditions`` of its rows.
    baseline : mapping
        A whole record. What it does not say is taken to be the same.

    Raises
    ------
    ConfigurationError
        The text says what is not the same.
    """
    there = baseline["environment"]
    for key in MACHINE:
        _check_same("machine", key, environment.get(key), there.get(key))
    known = {row["name"]: row for row in baseline["rows"]}
    for row in rows:
        name = row["name"]
        now, then = (each.get("conditions") for each in (row, known.get(name, row)))
        if now is None or then is None:  # an older record: of the machine's first GPU
            now, then = ({"cuda": each.get("cuda")} for each in (environment, there))
        for key, value in now.items():
            _check_same("measurement", f"{key} of {name!r}", value, then.get(key))


def _check_same(whole: str, what: str, now: object, then: object) -> None:
    if None not in (now, then) and now != then:
        raise ConfigurationError(
            f"the baseline is of another {whole}, the {what} being {then!r}, not "
            f"{now!r}: save a new one here"
        )


def check_writable(path: Path) -> None:
    """Open a record's file once, so that a wrong path is known before minutes of work.

    Raises
    ------
    OSError
        It cannot be written.
    """
    existed = path.exists()
    path.open("a").close()
    if not existed:
        path.unlink()
