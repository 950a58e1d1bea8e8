"""What several tests of the compilers share."""

import subprocess
from pathlib import Path

import pytest

from xdev import _config


@pytest.fixture(scope="session")
def run(python):
    def printed(program, *arguments, options=(), **environment):
        settings = {name: str(value) for name, value in environment.items()}
        done = python(*options, "-c", program, *arguments, **settings)
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
        return done.stdout

    return printed


@pytest.fixture
def no_disk_cache(monkeypatch, tmp_path):
    monkeypatch.setattr(_config, "cache_dir", lambda: tmp_path)


@pytest.fixture
def written(tmp_path):
    """A function that returns a function of its body, as of a user's file."""

    def function(body, parameters="x", head=""):
        lines = "".join(f"    {line}\n" for line in body.splitlines())
        text = f"{head}\ndef f({parameters}):\n{lines}"
        path, space = tmp_path / "user.py", {}
        path.write_text(text)
        exec(compile(text, path, "exec"), space)  # noqa: S102
        return space["f"]

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
