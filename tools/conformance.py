"""Run array-api-tests on xdev and compare with the table of what is known to fail.

The suite is on no package index: clone it, then give its folder::

    git clone --recurse-submodules https://github.com/data-apis/array-api-tests
    python tools/conformance.py array-api-tests --device cpu --examples 1000

The status is 0 where exactly the ids of ``tests/conformance.toml`` fail.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

if TYPE_CHECKING:
    from collections.abc import Mapping

TABLE = Path(__file__).parents[1] / "tests" / "conformance.toml"
#: With fewer examples a test may pass because it never met its case.
SUFFICIENT = 20


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a run and the table differ, in ids of tests."""

    unexpected: list[str]
    passing: list[str]
    missing: list[str]

    def __bool__(self) -> bool:
        """Whether they agree."""
        return not (self.unexpected or self.passing or self.missing)

    def __str__(self) -> str:
        """Return a line an id, under what is wrong with it."""
        titles = {
            "unexpected": "fails, and is not in the table: mend it, or give a reason",
            "passing": "is in the table, and passes: take it out",
            "missing": "is in the table, not in the suite: take it out or rename it",
        }
        groups = ((title, getattr(self, name)) for name, title in titles.items())
        return "\n".join(f"{each}\n  {title}" for title, ids in groups for each in ids)


def known(table: Path, device: str) -> dict[str, str]:
    """Return the reason for each id that is known to fail on a device."""
    groups = tomllib.loads(table.read_text())["fails"]
    return {
        each: group["reason"].strip()
        for group in groups
        if group["device"] == device
        for each in group["ids"]
    }


def outcomes(report: Path) -> dict[str, str]:
    """Return what became of each test, by id, from pytest's JUnit report.

    ``"passed"``, ``"failed"`` (or broken by an error) or ``"skipped"``.
    """
    found = {}
    for case in ET.parse(report).iter("testcase"):  # noqa: S314 - pytest's own file
        _, file, *classes = case.get("classname", "").split(".")
        name = "::".join([f"{file}.py", *classes, case.get("name", "")])
        kinds = {child.tag for child in case}
        failed = kinds & {"failure", "error"}
        found[name] = (
            "failed" if failed else "skipped" if "skipped" in kinds else "passed"
        )
    return found


def judge(found: Mapping[str, str], known: Mapping[str, str], examples: int) -> Verdict:
    """Compare outcomes with the ids that are known to fail."""
    passed = [each for each in known if found.get(each) in ("passed", "skipped")]
    return Verdict(
        unexpected=[
            each
            for each, outcome in found.items()
            if outcome == "failed" and each not in known
        ],
        passing=passed if examples >= SUFFICIENT else [],
        missing=[each for each in known if each not in found],
    )


def run(suite: Path, device: str, examples: int, jobs: int, report: Path) -> None:
    """Run the suite; its report goes to ``report``."""
    version = tomllib.loads(TABLE.read_text())["version"]
    command = [sys.executable, "-m", "pytest", "array_api_tests", "-q", "--tb=short"]
    command += ["--disable-deadline", f"--max-examples={examples}"]
    command += ["-p", "no:cacheprovider", f"--junitxml={report}"]
    command += ["-n", str(jobs)] if jobs > 1 else []
    environment = os.environ | {
        "ARRAY_API_TESTS_MODULE": "xdev",
        "ARRAY_API_TESTS_VERSION": version,
        "HYPOTHESIS_STORAGE_DIRECTORY": str(report.with_name("hypothesis")),
        "XDEV_DEVICE": device,
    }
    subprocess.run(command, cwd=suite, env=environment, check=False)


def main(arguments: list[str] | None = None) -> int:
    """Run and compare; return 0 where the table is true."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("suite", type=Path, help="a checkout of array-api-tests")
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--examples", type=int, default=1000, help="of each test")
    parser.add_argument(
        "--jobs", type=int, default=1, help="processes, by pytest-xdist"
    )
    parser.add_argument("--table", type=Path, default=TABLE)
    chosen = parser.parse_args(arguments)
    if not (chosen.suite / "array_api_tests").is_dir():
        parser.error(
            f"{chosen.suite} is no checkout of array-api-tests: clone it first"
        )
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.xml")
        run(chosen.suite, chosen.device, chosen.examples, chosen.jobs, report)
        if not report.exists():
            print("the suite did not run: pytest's message is above")
            return 2
        found = outcomes(report)
    reasons = known(chosen.table, chosen.device)
    verdict = judge(found, reasons, chosen.examples)
    failed = sum(outcome == "failed" for outcome in found.values())
    print(
        f"{chosen.device}: {failed} of {len(found)} fail, {len(reasons)} are known to"
    )
    print("as the table has it" if verdict else verdict)
    return 0 if verdict else 1


if __name__ == "__main__":
    sys.exit(main())
