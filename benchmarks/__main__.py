"""``python -m benchmarks``: run every program here and keep what it measured.

The record goes to ``benchmarks/results/<date>-<device>.json``: under each program's
name what it wrote, or why it did not finish. Programs that are not run keep what the
file has of them.
"""

import json
import re
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import xdev
from xdev.timing.environment import cuda_name, processor_name

HERE = Path(__file__).parent
SHARED = {"__init__", "__main__", "allocator_models", "calls", "record", "workloads"}


def programs() -> list[Path]:
    """Return the programs of this folder, by name."""
    return sorted(path for path in HERE.glob("*.py") if path.stem not in SHARED)


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


def main() -> int:
    """Run all programs, or those named on the command line; return 1 if one failed."""
    wanted = set(sys.argv[1:])
    unknown = wanted - {path.stem for path in programs()}
    if unknown:
        known = ", ".join(path.stem for path in programs())
        print(f"no benchmark is called {', '.join(sorted(unknown))}: {known}")
        return 2
    records = {
        path.stem: run(path) for path in programs() if not wanted or path.stem in wanted
    }
    name = f"{datetime.now(UTC):%Y-%m-%d}-{device_name()}.json"
    path = HERE / "results" / name
    path.parent.mkdir(exist_ok=True)
    kept = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    text = json.dumps(dict(sorted({**kept, **records}.items())), indent=1)
    path.write_text(f"{text}\n", encoding="utf-8")
    failed = [stem for stem, record in records.items() if "failed" in record]
    print(f"\nwritten: {path}" + (f"; failed: {', '.join(failed)}" if failed else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
