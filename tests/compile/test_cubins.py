"""Cubins on disk: what was saved comes back, and nothing else does."""

import stat

import pytest

from xdev import _config
from xdev.compile import cubins


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(_config, "cache_dir", lambda: tmp_path / "cache")
    return tmp_path / "cache" / "cubins"


def test_a_saved_cubin_comes_back_from_a_private_folder(folder):
    cubins.save("key", b"\x7fELF\n\x00code", "_Z6kernelv")

    assert cubins.load("key") == (b"\x7fELF\n\x00code", "_Z6kernelv")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert [file.name for file in folder.iterdir()] == ["key"]


@pytest.mark.usefixtures("folder")
def test_an_unknown_key_is_none():
    assert cubins.load("nothing") is None


@pytest.mark.parametrize("spoil", [lambda b: b[:-1], lambda b: b + b"x", lambda _: b""])
def test_a_damaged_entry_is_none(folder, spoil):
    cubins.save("key", b"code", "name")
    file = folder / "key"
    file.write_bytes(spoil(file.read_bytes()))

    assert cubins.load("key") is None


def test_a_folder_that_others_can_write_is_not_used(folder):
    cubins.save("key", b"code", "name")
    folder.chmod(0o777)

    assert cubins.load("key") is None
    cubins.save("other", b"code", "name")
    assert not (folder / "other").exists()


def test_a_folder_that_cannot_be_made_is_no_error(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(_config, "cache_dir", lambda: tmp_path / "file")

    cubins.save("key", b"code", "name")

    assert cubins.load("key") is None
