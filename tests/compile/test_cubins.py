"""Cubins on disk: one that was compiled for the same is not compiled again."""

import pytest

from xdev import _config
from xdev.compile import digests, toolchain

MADE = b"\x7fELF\n\x00code", "_Z6kernelv"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(_config, "cache_dir", lambda: tmp_path)
    return tmp_path / "cubins"


def kept(digest="digest", parts=("ff->f", (9, 0))):
    """Return the cubin, and whether it was compiled now."""
    calls = []

    def make():
        calls.append(1)
        return MADE

    assert toolchain.kept(digest, parts, "f", make) == MADE
    return bool(calls)


def test_it_is_compiled_once():
    assert kept()
    assert not kept()


def test_a_function_without_a_digest_is_compiled_each_time(folder):
    assert kept(digest=None)
    assert kept(digest=None)
    assert not folder.exists()


def test_whatever_it_depends_on_compiles_it_anew(monkeypatch):
    kept()
    assert kept(digest="other")
    assert kept(parts=("dd->d", (9, 0)))
    assert kept(parts=("ff->f", (8, 0)))
    versions = toolchain.installed()
    for part in versions:
        newer = {**versions, part: "99.0"}
        with monkeypatch.context() as patch:
            patch.setattr(toolchain, "installed", lambda newer=newer: newer)
            assert kept()
    monkeypatch.setattr(digests, "environment", lambda: "another xdev")
    assert kept()


def test_a_damaged_one_is_compiled_and_kept_anew(folder):
    kept()
    (file,) = folder.iterdir()
    file.write_bytes(file.read_bytes()[:-1])

    assert kept()
    assert not kept()


def test_a_failure_to_compile_keeps_nothing(folder):
    def make():
        raise TypeError("cannot compile f")

    with pytest.raises(TypeError, match="cannot compile f"):
        toolchain.kept("digest", (), "f", make)
    assert not folder.exists()


@pytest.mark.parametrize(
    ("linker", "compiler", "nvvm", "words"),
    [
        ((12, 4), (13, 0), "13.0.48", "nvJitLink 12.4 is older than NVRTC 13.0, "),
        ((12, 4), (12, 8), "12.8.93", "pip install 'nvidia-nvjitlink-cu12>=12.8'"),
        ((13, 0), (13, 0), "13.2.51", "nvJitLink 13.0 is older than NVVM 13.2, "),
        ((13, 0), (13, 0), "13.2.51", "pip install 'nvidia-nvjitlink>=13.2'"),
    ],
)
def test_an_nvjitlink_older_than_the_compilers_is_refused(
    linker, compiler, nvvm, words, monkeypatch
):
    bound = {"nvjitlink": linker, "nvrtc": compiler}
    monkeypatch.setattr(toolchain, "_bound", bound.get)
    monkeypatch.setattr(toolchain, "installed", lambda: {"nvvm": nvvm})

    with pytest.raises(toolchain.DeviceUnavailableError) as refused:
        toolchain.check()
    assert words in str(refused.value)


@pytest.mark.parametrize(
    ("linker", "compiler", "nvvm"),
    [
        ((13, 1), (13, 0), "13.0.48"),
        ((13, 0), (13, 0), "13.0.99"),
        ((13, 0), (13, 0), ""),
        (None, (13, 0), "13.0.48"),
    ],
)
def test_one_that_is_as_new_is_not(linker, compiler, nvvm, monkeypatch):
    bound = {"nvjitlink": linker, "nvrtc": compiler}
    monkeypatch.setattr(toolchain, "_bound", bound.get)
    monkeypatch.setattr(toolchain, "installed", lambda: {"nvvm": nvvm})

    toolchain.check()
