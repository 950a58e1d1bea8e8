"""What README.md promises: its program runs, and CI runs its test command."""

import re
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


def test_the_program_runs(device, python):
    (program,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    result = python("-c", program, XDEV_DEVICE=str(device))

    assert result.stderr == ""
    first = result.stdout.splitlines()[0]
    assert first.startswith(f"{device} 0.62")  # 0.25 / 2 + 0.75 * 2 / 3


def test_the_quickstarts_program_runs(device, python, tmp_path):
    page = (ROOT / "docs" / "quickstart.md").read_text()
    (program,) = re.findall(r"```python\n(import.*?)```", page, re.DOTALL)
    (numbers,) = re.findall(r"printf '(.*)' > data.csv", page)
    (tmp_path / "data.csv").write_text(numbers.replace(r"\n", "\n"))

    result = python("-c", program, cwd=tmp_path, XDEV_DEVICE=str(device))

    assert result.stderr == ""
    assert result.stdout.startswith(f"{device} 3.79")  # 11.375 / 3
    assert np.load(tmp_path / "result.npy").tolist() == [1.75, 3.875, 5.75]


def test_the_test_command_is_cis():
    marked = re.findall(r"<!-- test command -->\n```sh\n(python .*)\n```", README)

    assert len(marked) == 1
    assert "<!-- test command -->" in (ROOT / ".ci" / "run").read_text()


def test_no_text_installs_what_is_on_no_index():
    texts = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    texts += (ROOT / "xdev").rglob("*.py")
    installed = re.compile(r"pip install (?:-\S+ )*[\"']?(xdev|xdev-array)\b")

    assert [path for path in texts if installed.search(path.read_text())] == []
