"""``python -m benchmarks``: run every program here and keep what it measured.

The record goes to ``benchmarks/results/<date>-<device>.json``: under each program's
name what it wrote, with its date, or why it did not finish. Programs that are named
renew their parts of the device's last record; its own date is that of the day on which
all were run. From the record alone comes a page, ``docs/benchmarks/<device>.md``.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import xdev
from benchmarks import figures, page
from xdev.timing.environment import cuda_name, processor_name

HERE = Path(__file__).parent


def programs() -> list[Path]:
    """Return the programs of this folder, by name; other modules are parts of them."""
    return [
        path
        for path in sorted(HERE.glob("[!_]*.py"))
        if 'if __name__ == "__main__":' in path.read_text(encoding="utf-8")
    ]


def run(program: Path) -> dict[str, Any]:
    """Run one program; return its record, or ``{"failed": why}``."""
    print(f"\n{program.stem}\n{'-' * len(program.stem)}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "record.json"
        command = [sys.executable, str(program), "--json", str(path)]
        done = subprocess.run(command, check=False)
        if done.returncode:
            return {"failed": f"exit status {done.returncode}"}
        if not path.exists():
            return {"failed": "it wrote no record"}
        record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return record


def device_name() -> str:
    """Return the name of what was measured, fit for a file's name."""
    device = xdev.default_device()
    name = cuda_name(device.index) if device.type == "cuda" else processor_name()
    return re.sub(r"[^A-Za-z0-9]+", "-", name or str(device)).strip("-").lower()


def record_path(device: str, *, whole: bool, folder: Path = HERE / "results") -> Path:
    """Return the file for what was measured: a new one for a whole run."""
    day = "[0-9]" * 4 + 2 * "-[0-9][0-9]"
    kept = sorted(folder.glob(f"{day}-{device}.json"))
    if kept and not whole:
        return kept[-1]
    return folder / f"{datetime.now(UTC):%Y-%m-%d}-{device}.json"


def measure(names: list[str]) -> int:
    """Run the programs of these names; return 1 if one failed, 2 if one is unknown."""
    known = {path.stem: path for path in programs()}
    unknown = [name for name in names if name not in known]
    if unknown:
        print(f"no benchmark is called {', '.join(unknown)}: {', '.join(known)}")
        return 2
    records = {name: run(known[name]) for name in names or known}
    path = record_path(device_name(), whole=not names)
    path.parent.mkdir(exist_ok=True)
    kept = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    text = json.dumps(dict(sorted({**kept, **records}.items())), indent=1)
    path.write_text(f"{text}\n", encoding="utf-8")
    failed = [stem for stem, record in records.items() if "failed" in record]
    print(f"\nwritten: {path}, {page.write(path)}")
    if failed:
        print(f"failed: {', '.join(failed)}")
    return 1 if failed else 0


def main() -> int:
    """Do what the command line says."""
    parser = argparse.ArgumentParser("python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", help="the programs to run (default: all)")
    parser.add_argument(
        "--page", type=Path, metavar="RECORD", help="only write the page of a record"
    )
    parser.add_argument(
        "--figures",
        action="store_true",
        help="only set the figures in README.md and docs as their records have them",
    )
    options = parser.parse_args()
    if options.page:
        print(f"written: {page.write(options.page)}")
        return 0
    if options.figures:
        for changed in figures.correct():
            print(f"written: {changed}")
        return 0
    return measure(options.names)


if __name__ == "__main__":
    sys.exit(main())
