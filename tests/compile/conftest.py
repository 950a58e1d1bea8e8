"""What several tests of the compilers share."""

import subprocess
from pathlib import Path
from textwrap import indent

import pytest
from running import with_source

from xdev import _config


@pytest.fixture
def no_disk_cache(monkeypatch, tmp_path):
    monkeypatch.setattr(_config, "cache_dir", lambda: tmp_path)


@pytest.fixture
def written():
    """A function that returns a function of its body, as of a user's file."""

    def function(body, parameters="x", head=""):
        return with_source(f"{head}\ndef f({parameters}):\n{indent(body, '    ')}")

    return function


@pytest.fixture
def instructions(tmp_path):
    """A function that returns the machine instructions of a cubin, one text each."""

    def found(code):
        file = tmp_path / "kernel.cubin"
        file.write_bytes(code)
        text = subprocess.run(
            [disassembler(), "-c", file], capture_output=True, text=True, check=True
        ).stdout
        lines = (line.split("*/", 1)[-1].strip() for line in text.splitlines())
        listed = [line for line in lines if line.endswith(";")]
        assert listed  # else what must not be there never is
        return listed

    return found


def disassembler():
    missing = "needs nvidia-cuda-nvdisasm: the group cuda"
    nvidia = pytest.importorskip("nvidia", reason=missing)
    found = (f for p in nvidia.__path__ for f in Path(p).glob("*/bin/nvdisasm"))
    return next(found, None) or pytest.skip(missing)
